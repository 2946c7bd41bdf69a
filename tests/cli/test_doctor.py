"""retort doctor: what holds, what does not, the remedy."""
import json

import cli


class Doctor(cli.Case):
    def steps(self):
        return cli.run("doctor", "--steps").out.split()

    def test_everything_holds_here(self):
        done = cli.run("doctor")
        self.assertStatus(done, 0)
        self.assertNotIn("✗", done.out)
        self.assertIn("✓ kernel-filter", done.out)
        self.assertIn("Every essential layer holds", done.out)
        self.assertLessEqual(max(map(len, done.out.splitlines())), 80)
        for name in ("user", "system calls", "namespaces", "network", "memory", "wall time",
                     "processes and threads", "disk", "output"):
            self.assertRegex(done.out, f"(?m)^  ✓ {name} ")

    def test_json(self):
        done = cli.run("doctor", "--json")
        self.assertStatus(done, 0)
        self.assertEqual(done.err, "")
        found = json.loads(done.out)
        self.assertIs(found["ok"], True)
        self.assertEqual([s["name"] for s in found["steps"]], self.steps())
        self.assertEqual({s["status"] for s in found["steps"]}, {"ok"})
        self.assertEqual({t["result"] for t in found["trials"] if t["essential"]}, {"held"})
        self.assertGreaterEqual(len(found["trials"]), 15)
        for key in ("kernel", "uid", "cgroup_version", "landlock_abi"):
            self.assertIn(key, found["host"])

    def test_each_step_that_fails_is_named(self):
        for step in self.steps():
            with self.subTest(step=step):
                done = cli.run("doctor", "--json", env={"RETORT_FAULT": step})
                self.assertStatus(done, 1)
                found = json.loads(done.out)
                self.assertIs(found["ok"], False)
                states = {s["name"]: s["status"] for s in found["steps"]}
                self.assertEqual(states.get(step), "failed", f"{done}")
                self.assertEqual(list(states.values()).count("failed"), 1)
                self.assertEqual(found["trials"], [])

    def test_a_failure_for_people(self):
        done = cli.run("doctor", env={"RETORT_FAULT": "init-proc"})
        self.assertStatus(done, 1)
        self.assertRegex(done.out, r"(?m)^  ✗ init-proc +FAILED\n    why: failed on purpose")
        self.assertIn("    remedy: needs Linux 5.8", done.out)
        self.assertLessEqual(max(map(len, done.out.splitlines())), 80)
        self.assertRegex(done.out, r"(?m)^  · init-pivot +not tried$")

    def test_without_utf8(self):
        done = cli.run("doctor", env={"LC_ALL": "C"})
        self.assertStatus(done, 0)
        self.assertTrue(done.out.isascii(), f"{done}")
        self.assertIn("  ok   kernel", done.out)

    def test_as_an_ordinary_user(self):
        done = cli.run("doctor", "--json", user=cli.NOBODY)
        self.assertStatus(done, 0)
        found = json.loads(done.out)
        self.assertEqual(found["host"]["uid"], cli.NOBODY)
        if found["host"]["cgroup_version"] == 0:
            self.assertTrue(found["host"]["cgroup_reason"])
            self.assertIn("memory", found["host"]["limits_without_cgroups"])
