"""What `make` says of its set-up, and that what `make install` puts in place works from there."""
import os
import subprocess

import cli

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


class SetUp(cli.Case):
    def set_up(self, **env):
        return subprocess.run(["make", "-s", "-C", SOURCE, f"BUILD={self.path('b')}", "configure"],
                              capture_output=True, text=True, timeout=cli.PATIENCE, env=cli.plain_environment(**env))

    def test_it_is_quiet_when_all_is_well(self):
        done = self.set_up()
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        made = self.path("b/build.ninja")
        os.utime(made, (1, 1))
        done = self.set_up()
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        self.assertGreater(os.stat(made).st_mtime, 1)

    def test_it_says_all_when_it_fails(self):
        done = self.set_up(CC="/bin/false")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("The Meson build system", done.stderr)
        self.assertIn("ERROR: ", done.stderr)


class Installed(cli.Case):
    def test_it_finds_its_own_files(self):
        build = os.path.dirname(cli.RETORT)
        subprocess.run(["meson", "install", "-C", build, "--no-rebuild", "--quiet", "--destdir", self.path("root")],
                       check=True, stdout=subprocess.DEVNULL)
        found = [os.path.join(d, n) for d, _, names in os.walk(self.path("root")) for n in names]
        binary = next(f for f in found if f.endswith("/bin/retort"))
        done = subprocess.run([binary, "run", "-c", "print(6 * 7)"], capture_output=True, text=True,
                              timeout=cli.PATIENCE, env=cli.plain_environment())
        self.assertEqual((done.returncode, done.stdout), (0, "42\n"), done.stderr)
        # Also in a home that is closed to everybody else.
        os.chmod(self.path("root"), 0o700)
        done = subprocess.run([binary, "run", "-c", "print(6 * 7)"], capture_output=True, text=True,
                              timeout=cli.PATIENCE, env=cli.plain_environment())
        self.assertEqual((done.returncode, done.stdout), (0, "42\n"), done.stderr)
        self.assertTrue(any(f.endswith("/man1/retort.1") for f in found), found)
