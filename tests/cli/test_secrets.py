"""What whoever starts retort has in the environment stays with the process that was started."""
import os
import re
import secrets

import cli


def children(pid):
    found = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/children") as f:
            for child in map(int, f.read().split()):
                found += [child, *children(child)]
    return found


def memory_has(pid, text):
    """In its memory, its arguments or its environment?"""
    try:
        with open(f"/proc/{pid}/maps") as f:
            maps = [re.match(r"(\w+)-(\w+) r", line) for line in f if "[v" not in line]
        mem = open(f"/proc/{pid}/mem", "rb")
    except (FileNotFoundError, ProcessLookupError):
        return False  # it has ended meanwhile
    with mem:
        for found in filter(None, maps):
            start, end = (int(found[i], 16) for i in (1, 2))
            mem.seek(start)
            try:
                if text in mem.read(end - start):
                    return True
            except OSError:
                continue  # a page that cannot be read by anybody
    return False


class Environment(cli.Case):
    def test_no_process_below_has_it_in_its_memory(self):
        if os.geteuid() != 0:
            self.skipTest("only root may look into other processes")
        key = secrets.token_hex(24)
        p = cli.start("run", "-c", "print('go', flush=True)\nimport time\ntime.sleep(60)",
                      env={"OPENAI_API_KEY": key})
        cli.read_until(p.stdout, b"go\n")
        below = children(p.pid)
        self.assertGreater(len(below), 2)  # keeper, zygote, init, the interpreter
        self.assertTrue(memory_has(p.pid, key.encode()))  # so it can be found
        # The sweeper is no part of a box: it waits for the keeper's end with the starter's rights.
        boxed = [pid for pid in below if os.readlink(f"/proc/{pid}/ns/user") != os.readlink("/proc/self/ns/user")]
        self.assertGreater(len(boxed), 2)
        self.assertEqual([pid for pid in boxed if memory_has(pid, key.encode())], [])
        p.terminate()
        cli.finish(p)
