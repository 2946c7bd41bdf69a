"""What lasts: the journal and the notebook, over restarts, until the retention time has passed."""
import base64
import contextlib
import signal
import sqlite3
import time

import api


class Notebook(api.Case):
    def setUp(self):
        self.s = self.session()

    def notebook(self):
        answer = self.client.get(self.s.path + "/notebook")
        self.assertEqual(answer.status, 200, answer)
        self.assertRegex(answer.headers["Content-Disposition"], r'^attachment; filename="[^"]+\.ipynb"')
        return answer.json

    def test_empty(self):
        self.assertEqual(self.notebook()["cells"], [])

    def test_outputs(self):
        self.s.cell("print('a')\nprint('b')")
        self.s.cell("import sys; print('e', file=sys.stderr)\n'é' * 2")
        self.s.cell("1/0")
        self.s.cell("import matplotlib.pyplot as plt\nplt.plot([1])\nplt.show()")
        self.s.cell("from IPython.display import display, JSON\ndisplay(JSON({'a': [1]}))")
        self.s.cell("")
        cells = self.notebook()["cells"]
        self.assertEqual([c["execution_count"] for c in cells], [1, 2, 3, 4, 5, 6])
        self.assertEqual("".join(cells[0]["source"]), "print('a')\nprint('b')")
        self.assertEqual("".join(cells[0]["outputs"][0]["text"]), "a\nb\n")
        self.assertEqual([o["output_type"] for o in cells[1]["outputs"]], ["stream", "execute_result"])
        self.assertEqual(cells[1]["outputs"][1]["execution_count"], 2)
        self.assertEqual("".join(cells[1]["outputs"][1]["data"]["text/plain"]), "'éé'")
        self.assertEqual((cells[2]["outputs"][0]["output_type"], cells[2]["outputs"][0]["ename"]),
                         ("error", "ZeroDivisionError"))
        picture = next(o for o in cells[3]["outputs"] if o["output_type"] == "display_data")
        self.assertTrue(base64.b64decode(picture["data"]["image/png"]).startswith(b"\x89PNG"))
        shown = cells[4]["outputs"][0]["data"]
        self.assertEqual(shown["application/json"], {"a": [1]})  # nbformat: JSON as JSON, not as text
        self.assertEqual(cells[5]["outputs"], [])

    def test_it_names_the_kernel(self):
        metadata = self.notebook()["metadata"]
        self.assertEqual(metadata["kernelspec"]["name"], "python3")
        self.assertEqual(metadata["language_info"]["name"], "python")

    def test_many_cells(self):
        for i in range(150):
            self.s.cell(f"print({i})")
        cells = self.notebook()["cells"]
        self.assertEqual(["".join(c["outputs"][0]["text"]) for c in cells], [f"{i}\n" for i in range(150)])
        ids = [c["id"] for c in cells if "id" in c]
        self.assertEqual(len(ids), len(set(ids)))


class Restart(api.Case):
    def restarted(self, signal_number):
        state = self.directory()
        with api.Server(state=state) as server:
            session = server.client().session(metadata={"who": "é"}, idle_timeout=500)
            cells = [session.cell(code) for code in ("x = 1\nprint('kept')", "1/0", "open('f', 'w').write('x')")]
            deleted = server.client().session()
            deleted.cell("'deleted'")
            deleted.delete()
            before, notebook = session.info(), server.client().get(session.path + "/notebook").json
            server.end(signal_number)
            token = server.token
        with api.Server(state=state) as server:
            client = server.client(server.token or token)
            after = client.get(session.path).json
            self.assertEqual((after["status"], after["reason"]), ("ended", "restart"))
            for name in ("id", "environment", "limits", "created_at", "metadata", "cells", "idle_timeout"):
                self.assertEqual(after[name], before[name])
            self.assertEqual(client.get(session.path + "/cells").json["data"], cells)
            self.assertEqual(client.get(session.path + "/cells/2").json, cells[1])
            self.assertEqual(client.get(session.path + "/notebook").json, notebook)
            self.assertError(client.post(session.path + "/cells", code="1"), 410, "session_ended")
            self.assertError(client.get(session.path + "/files"), 410, "session_ended")
            self.assertEqual(client.get(deleted.path).json["reason"], "deleted")
            self.assertEqual([s["id"] for s in client.get("/v1/sessions").json["data"]], [])
            self.assertEqual({s["id"] for s in client.get("/v1/sessions?status=ended").json["data"]},
                             {session.id, deleted.id})
            fresh = client.session()
            self.assertEqual(fresh.cell("1")["n"], 1)
            self.assertEqual(client.delete(session.path).status, 204)
            self.assertError(client.get(session.path), 404)

    def test_after_sigterm(self):
        self.restarted(signal.SIGTERM)

    def test_after_sigkill(self):
        self.restarted(signal.SIGKILL)

    def test_tokens_last(self):
        state = self.directory()
        with api.Server(state=state) as server:
            token = server.new_token("mine")
            session = server.client(token).session()
            session.cell("print('mine')")
        with api.Server(state=state) as server:
            self.assertEqual(api.text(server.client(token).get(session.path + "/cells/1").json), "mine\n")

    def test_a_cell_that_ran_when_the_server_was_told_to_stop(self):
        state = self.directory()
        with api.Server("drain = 1\n", state=state) as server:
            session = server.client().session()
            later = session.begin("import time; time.sleep(100)", first="print('so far', flush=True)", timeout="none")
            server.end(signal.SIGTERM)
            token = server.token
            answer = later.result()
            self.assertEqual((answer.status, answer.json["status"]), (200, "interrupted"))
        with api.Server(state=state) as server:
            client = server.client(server.token or token)
            cells = client.get(session.path + "/cells").json["data"]
            self.assertEqual([(c["status"], api.text(c)) for c in cells], [("interrupted", "so far\n")])
            self.assertEqual(client.get(session.path).json["reason"], "restart")


class Retention(api.Case):
    config = "retention = 1s\n"

    def test_it_is_forgotten(self):
        session = self.session()
        session.cell("'to be forgotten'")
        session.delete()
        self.assertEqual(self.client.get(session.path + "/cells").status, 200)
        self.assertTrue(api.wait_until(lambda: self.client.get(session.path).status == 404))
        self.assertError(self.client.get(session.path + "/cells"), 404, "not_found")
        self.assertError(self.client.get(session.path + "/notebook"), 404, "not_found")

    def test_live_ones_are_kept(self):
        session = self.session()
        session.cell("1")
        time.sleep(3)
        self.assertEqual(session.info()["status"], "idle")
        self.assertEqual(len(self.client.get(session.path + "/cells").json["data"]), 1)


class KeptForEver(api.Case):
    config = "retention = none\n"

    def rows(self):
        with contextlib.closing(sqlite3.connect(f"file:{self.server.state}/retort.db?mode=ro", uri=True)) as db:
            return db.execute("SELECT count(*) FROM cells").fetchone()[0]

    def test_what_was_forgotten_goes_nevertheless(self):
        """A long journal is deleted piece by piece, and soon."""
        session = self.session(limits={"output": "4m"})
        for _ in range(40):
            session.cell("print('x' * 3500000)")
        session.delete()
        self.assertEqual(self.rows(), 40)
        session.delete()
        self.assertGreater(self.rows(), 0, "it went at once: nothing is tried here")
        self.assertTrue(api.wait_until(lambda: self.rows() == 0), f"{self.rows()} cells are left")
