"""Guests that stand in the way of their own branches, and inits that are stopped or killed, as a guest of the box
that they lie in can do where Landlock knows no signals: everybody else's sessions go on."""
import os
import signal

import api


def inits(server):
    """Of all boxes; the newest has the highest number."""
    found = []
    for pid in api.descendants(server.process.pid):
        try:
            with open(f"/proc/{pid}/comm") as f:
                if f.read() == "init\n":
                    found.append(pid)
        except OSError:
            pass
    return set(found)


def boxes(client):
    """That are sessions' or about to be, as the keeper told a moment ago."""
    metrics = client.metrics()
    return metrics["retort_boxes"] - metrics["retort_boxes_ready"] - metrics["retort_boxes_blank"]


class Hostile(api.Case):
    def setUp(self):
        super().setUp()
        self.server = self.start()
        self.client = self.server.client()
        self.s = self.client.session()
        self.s.cell("x = 1")

    def fork(self, session):
        """A branch, and its init."""
        before = inits(self.server)
        answer = self.client.post(session.path + "/fork")
        self.assertEqual(answer.status, 201, answer.json)
        return api.Session(self.client, answer.json["sessions"][0]["id"]), self.added_init(before)

    def added_init(self, before):
        ready = api.wait_until(lambda: inits(self.server) - before)
        return self.of_depth(ready)

    def of_depth(self, pids):
        """The one that lies deepest: those of the stock are no branches."""
        def depth(pid):
            with open(f"/proc/{pid}/status") as f:
                return next(len(line.split()) for line in f if line.startswith("NSpid:"))
        return max(pids, key=depth)

    def assertServes(self):
        other = self.client.session()
        self.assertEqual(api.result(other.cell("6 * 7")), "42")
        self.client.delete(other.path)

    def test_the_init_dies_of_one_that_has_ended_but_has_branches(self):
        b, init = self.fork(self.s)
        b.cell("y = 1")
        c, _ = self.fork(b)
        self.assertEqual(self.client.delete(b.path).status, 204)
        os.kill(init, signal.SIGKILL)
        self.assertTrue(api.wait_until(lambda: c.info()["status"] == "ended", api.SOON))
        self.assertServes()
        self.assertEqual(api.result(self.s.cell("x")), "1")
        self.client.delete(self.s.path)
        self.assertTrue(api.wait_until(lambda: boxes(self.client) == 0, api.SOON), boxes(self.client))

    def test_nobody_waits_any_more_for_a_branch_that_does_not_come(self):
        b, init = self.fork(self.s)
        os.kill(init, signal.SIGSTOP)
        for _ in range(3):
            with self.server.connect() as connection:
                body = b'{"count": 4}'
                connection.sendall(self.client.raw("POST", b.path + "/fork", "Content-Type: application/json",
                                                   f"Content-Length: {len(body)}", body=body))
                self.assertTrue(api.wait_until(lambda: boxes(self.client) == 2 + 4, api.SOON))
            self.assertTrue(api.wait_until(lambda: boxes(self.client) == 2, api.SOON), boxes(self.client))
        self.assertServes()
        os.kill(init, signal.SIGCONT)
        self.assertEqual(api.result(b.cell("x")), "1")
