"""What there is in the environments, for clients that choose one and for models."""
import os
import shutil
import signal
import subprocess
import threading
import time

import api


class Environments(api.Case):
    config = ""

    def test_what_there_is(self):
        answer = self.client.get("/v1/environments")
        self.assertEqual(answer.status, 200)
        (default,) = answer.json["data"]
        self.assertEqual(default["name"], "default")
        libraries = {each["name"]: each for each in default["libraries"]}
        real = self.client.post("/v1/run", code="import sys, numpy, PIL\n(sys.version.split()[0], numpy.__version__, PIL.__version__)")
        self.assertEqual(real.json["outputs"][0]["data"]["text/plain"],
                         repr((default["python"], libraries["numpy"]["version"], libraries["Pillow"]["version"])))
        self.assertEqual(libraries["Pillow"]["import"], "PIL")
        self.assertEqual({each["group"] for each in default["libraries"]} - {"core", "documents", "media", "more", "other"}, set())
        self.assertIn(f"Python {default['python']}", default["description"])
        self.assertIn("pandas 1.", default["description"])
        self.assertLess(len(default["description"]), 1500)
        self.assertEqual(self.client.get("/v1/sessions").json["data"], [])

    def test_asked_once(self):
        self.client.get("/v1/environments")
        began = time.monotonic()
        for _ in range(20):
            self.assertEqual(self.client.get("/v1/environments").status, 200)
        self.assertLess(time.monotonic() - began, 15)  # twenty boxes take longer

    def test_a_token_is_needed(self):
        self.assertError(self.server.stranger().get("/v1/environments"), 401)


class Several(api.Case):
    """A virtual environment beside the default one, and many who ask at once."""

    def setUp(self):
        super().setUp()
        self.place = api.new_directory()
        os.chmod(self.place, 0o755)
        self.addCleanup(shutil.rmtree, self.place)
        self.venv = os.path.join(self.place, "venv")
        subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", "--system-site-packages", self.venv], check=True)
        site = os.path.join(self.venv, "lib", os.listdir(os.path.join(self.venv, "lib"))[0], "site-packages")
        os.makedirs(os.path.join(site, "only_here-7.5.dist-info"))
        with open(os.path.join(site, "only_here-7.5.dist-info", "METADATA"), "w") as file:
            file.write("Metadata-Version: 2.1\nName: only-here\nVersion: 7.5\nSummary: for this test\n")
        with open(os.path.join(site, "only_here.py"), "w") as file:
            file.write("")

    def test_each_for_itself(self):
        with api.Server(f"environments = default {self.venv}\n") as server:
            client = server.client()
            answers = []
            threads = [threading.Thread(target=lambda: answers.append(server.client().get("/v1/environments"))) for _ in range(5)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual([answer.status for answer in answers], [200] * 5)
            self.assertEqual(len({answer.body for answer in answers}), 1)
            default, own = answers[0].json["data"]
            self.assertEqual((default["name"], own["name"]), ("default", self.venv))
            self.assertNotIn("only-here", [each["name"] for each in default["libraries"]])
            self.assertIn({"name": "only-here", "import": "only_here", "version": "7.5", "group": "other", "about": "for this test"},
                          own["libraries"])
            self.assertIn("only-here", own["description"])
            self.assertEqual(client.get("/v1/environments").json, answers[0].json)

    def test_one_that_cannot_be_asked(self):
        os.makedirs(os.path.join(self.place, "broken", "bin"))
        shutil.copy("/bin/false", os.path.join(self.place, "broken", "bin", "python3"))
        with api.Server(f"environments = default {self.place}/broken\n") as server:
            def refused():
                answer = server.client().get("/v1/environments")
                self.assertError(answer, 503, "no_box", "broken")
                return int(answer.headers["Retry-After"])

            def times_asked():
                return server.log.count("environment name=")

            for _ in range(5):
                seconds = refused()
                self.assertIn(seconds, range(1, 11))
            self.assertEqual(times_asked(), 1)
            self.assertEqual(server.client().post("/v1/run", code="1").status, 200)
            time.sleep(seconds)
            refused()
            self.assertEqual(times_asked(), 2)

    def test_whoever_goes_away_and_whoever_stays(self):
        with api.Server() as server:
            with server.connect() as sock:
                sock.sendall(f"GET /v1/environments HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.token}\r\n\r\n".encode())
                time.sleep(0.3)
            self.assertEqual(server.client().get("/v1/environments").status, 200)

    def test_a_server_that_stops_meanwhile(self):
        with api.Server() as server:
            answers = []
            thread = threading.Thread(target=lambda: answers.append(server.client().get("/v1/environments")))
            thread.start()
            time.sleep(0.3)
            self.assertEqual(server.end(signal.SIGTERM), 0)
            thread.join()
            self.assertIn(answers[0].status, (200, 503))
