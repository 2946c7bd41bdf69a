"""A task: files and a program go in; text, pictures and files come out, and are looked at.

The programs are what a model writes for a notebook, and know nothing of retort. What they find is compared
with what the test works out by itself, by other means where there are any.
"""
import base64
import io
import json
import os
import urllib.request

import cli
import numpy as np
from PIL import Image

VERBOSE = False  # run.py sets it


class Case(cli.Case):
    """Tasks of one class share a server, and with it a warm interpreter."""

    @classmethod
    def setUpClass(cls):
        cls.server = cli.Server()
        cls.addClassCleanup(cls.server.stop)

    def do(self, code, *files):
        """The cell, which has ended well and complained of nothing."""
        uploads = [part for path in files for part in ("-f", path)]
        # None takes a tenth of the usual time limit, but on a busy machine.
        done = cli.run("run", "--json", "--timeout", str(cli.PATIENCE), "--server", self.server.link, *uploads,
                       "-o", self.path("out"), "-", input=code)
        self.assertIn(done.status, (0, 1), done)
        cell = done.json
        self.assertEqual(cell["status"], "ok", cell.get("error") or cell)
        self.assertEqual(cli.text(cell, "stderr"), "")
        self.tell(cell)
        return cell

    def tell(self, cell):
        if VERBOSE:
            spent = cell["receipt"]
            print(f"       {self.id()}: {spent['wall_ms'] / 1000:.1f} s, {spent['peak_memory'] >> 20} MB", flush=True)

    def out(self, *names):
        path = self.path("out", *names)
        self.assertTrue(os.path.exists(path), f"there is no {names}")
        return path

    def picture(self, name):
        """A file's, as an array of lines of red, green, blue."""
        with Image.open(self.out(name)) as image:
            return np.asarray(image.convert("RGB")).astype(int)

    def assertDrawn(self, picture, colours=2):
        self.assertGreaterEqual(len(np.unique(picture.reshape(-1, 3), axis=0)), colours)


def shown(cell):
    """The pictures that a cell has shown."""
    found = [o["data"]["image/png"] for o in cell["outputs"] if "image/png" in o.get("data", {})]
    return [np.asarray(Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB")).astype(int) for data in found]


def last_json(cell):
    """What a program has printed in its last line."""
    return json.loads(cli.text(cell).strip().splitlines()[-1])


def coloured(picture, rgb, near=40):
    """Where a picture has about this colour."""
    return (abs(picture - np.array(rgb)) <= near).all(axis=2)


def upload(server, session, name, data):
    request = urllib.request.Request(f"{server.base}/v1/sessions/{session}/files/{name}", method="PUT", data=data,
                                     headers={"Authorization": f"Bearer {server.token}"})
    urllib.request.urlopen(request, timeout=cli.PATIENCE).close()


def download(server, session, name):
    request = urllib.request.Request(f"{server.base}/v1/sessions/{session}/files/{name}",
                                     headers={"Authorization": f"Bearer {server.token}"})
    with urllib.request.urlopen(request, timeout=cli.PATIENCE) as answer:
        return answer.read()
