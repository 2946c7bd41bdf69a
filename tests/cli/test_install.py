"""What `make install` puts in place works from there."""
import os
import subprocess

import cli


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
