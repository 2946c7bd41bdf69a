"""What a model has to read before it can begin."""
import json
import unittest

import api
import wire

TOKENS = 2500  # estimated as bytes / 4


class Size(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.http = wire.Http(api.shared())

    def test_tools(self):
        answer = self.http.post(wire.request("tools/list"))
        self.assertNotIn("nextCursor", answer.message["result"])
        size = len(json.dumps(answer.message["result"]["tools"], separators=(",", ":"), ensure_ascii=False).encode())
        self.assertLess(size, 4 * TOKENS)
        self.assertLess(len(answer.body), 4 * TOKENS)

    def test_tools_in_the_old_era(self):
        answer = self.http.post(wire.old("tools/list"), self.http.handshake())
        self.assertLess(len(answer.body), 4 * TOKENS)

    def test_instructions(self):
        answer = self.http.post(wire.request("server/discover"))
        self.assertLess(len(answer.message["result"]["instructions"].encode()), 2000)
