"""Guests that stand in the way of their own branches, and inits that are stopped or killed, as a guest of the box
that they lie in can do where Landlock knows no signals: everybody else's sessions go on."""
import glob
import os
import signal
import time
import unittest

import api

# One that pretends to wait, with the state of cell 1: it lets go of the first branch that it is to become, and keeps
# the second waiting.
PRETENDER = r"""
import array, os, socket, struct, threading
def pretend():
    line = socket.socket(fileno=os.dup(5))
    line.send(struct.pack('<III', 2, 7777, 1))
    if struct.unpack('<II', line.recv(64)) != (16, 7777):
        os._exit(1)
    between = os.fork()
    if between == 0:
        if os.fork() == 0:
            wait(line)
        os._exit(0)
    os.waitpid(between, 0)
def wait(line):
    mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    socket.send_fds(line, [struct.pack('<III', 3, 1, 0)], [theirs.fileno()])
    theirs.close()
    line.close()
    seen = 0
    while True:
        word, fds, _, _ = socket.recv_fds(mine, 1000, 20)
        if struct.unpack('<I', word[:4])[0] == 4:
            seen += 1
            if seen == 1:
                for fd in fds: os.close(fd)
threading.Timer(1, pretend).start()
"""

# One that becomes a branch, but keeps its rights over the new namespaces. What it can do is in a file.
RIGHTS = PRETENDER.replace("seen += 1", "keep_rights(fds)") + r"""
import ctypes, errno, fcntl
libc = ctypes.CDLL(None, use_errno=True)
def enter(fd, kind):
    assert libc.syscall(308, fd, kind, 0x62726e63) == 0, (fd, hex(kind), ctypes.get_errno())
def keep_rights(fds):
    out = open('/mnt/data/probe', 'w')
    if os.fork():
        return
    enter(fds[6], 0x10000000)
    enter(fds[7], 0x20000000)
    if os.fork():
        os._exit(0)
    for way in fds[11:]:
        os.write(way, b'0')
    os.write(fds[4], struct.pack('<I', 1))
    _, more, _, _ = socket.recv_fds(socket.socket(fileno=fds[5]), 1000, 20)
    for fd, kind in ((fds[8], 0x20000), (fds[9], 0x8000000), (fds[10], 0x4000000), (more[0], 0x40000000)):
        enter(fd, kind)
    status = open('/proc/self/status').read()
    print('rights', status.split('CapEff:')[1].split()[0].strip('0') != '', file=out)
    for name, act in ACTS:
        try: act(); result = 'done'
        except OSError as e: result = errno.errorcode[e.errno]
        print(name, result, file=out)
    print('end', file=out, flush=True)
    os._exit(0)
lo = b'lo'.ljust(16, b'\0')
def call(*args):
    if libc.syscall(*args) < 0:
        raise OSError(ctypes.get_errno(), '')
def opened(kind, *args):
    return lambda: socket.socket(*kind).setsockopt(*args)
def asked(number, what):
    return lambda: fcntl.ioctl(socket.socket(type=socket.SOCK_DGRAM), number, what)
TCP, UDP, UDP6 = (2, 1), (2, 2), (10, 2)
ACTS = [
    ('setsockopt-mark', opened(UDP, 1, 36, 7)),  # it has the right, and this is harmless
    ('mount', lambda: call(165, b'x', b'/tmp', b'tmpfs', 0, 0)),
    ('unshare', lambda: call(272, 0x20000)),
    ('chroot', lambda: call(161, b'/tmp')),
    ('sethostname', lambda: call(170, b'x', 1)),
    ('keyctl', lambda: call(250, 0, 0)),
    ('tables', opened(UDP, 0, 64, bytes(200))),
    ('xfrm', opened(UDP, 0, 17, bytes(200))),
    ('xfrm6', opened(UDP6, 41, 35, bytes(200))),
    ('headers', opened(UDP6, 41, 54, bytes(8))),
    ('repair', opened(TCP, 6, 19, 1)),
    ('name', asked(0x8923, lo + b'x'.ljust(24, b'\0'))),
    ('flags', asked(0x8914, lo + bytes(24))),
    ('mtu', asked(0x8922, lo + struct.pack('i', 9000) + bytes(20))),
    ('address', asked(0x8916, lo + struct.pack('HH4s', 2, 0, bytes([10, 0, 0, 1])) + bytes(16))),
    ('route', asked(0x890b, bytes(120))),
    ('neighbour', asked(0x8955, bytes(68))),
    ('tunnel', asked(0x89f1, lo + bytes(24))),
    ('bridge', asked(0x89a0, b'br0')),
    ('names', asked(0x8912, bytes(16))),  # everybody's
]
"""


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


def memory_cgroup(pid):
    with open(f"/proc/{pid}/cgroup") as f:
        return "/sys/fs/cgroup/memory" + next(line.strip().split(":")[2] for line in f if ":memory:" in line)


NEEDS_V1 = unittest.skipIf(api.USER is not None or not os.path.exists("/sys/fs/cgroup/memory/cgroup.procs"),
                           "no cgroups of version 1, which a process enters by itself")


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

    def pretend(self, client):
        session = client.session()
        session.cell(PRETENDER)
        time.sleep(2)
        return session

    def test_a_token_is_revoked_while_one_branch_failed_and_one_does_not_come(self):
        client = self.server.client(self.server.new_token("eve"))
        forking = api.Later(lambda: client.post(self.pretend(client).path + "/fork", count=2))
        time.sleep(5)
        self.assertFalse(forking.over, forking.value)
        self.assertEqual(api.run("token", "revoke", "eve", "--state", self.server.state).returncode, 0)
        self.assertIn(forking.result(api.SOON).status, (401, 410, 503))
        self.assertTrue(api.wait_until(lambda: boxes(self.client) == 1, api.SOON), boxes(self.client))
        self.assertServes()

    def test_candidates_that_do_not_come_are_not_waited_for(self):
        session = self.pretend(self.client)
        trying = api.Later(lambda: self.client.post(session.path + "/try", candidates=["1", "2"]))
        time.sleep(2)
        self.assertFalse(trying.over, trying.value)
        self.assertEqual(self.client.post(session.path + "/interrupt").status, 200)
        self.assertError(trying.result(api.SOON), 503, "no_box")
        self.assertEqual(session.cell("6 * 7")["status"], "ok")
        trying = api.Later(lambda: self.client.post(session.path + "/try", candidates=["1", "2"]))
        time.sleep(2)
        self.assertEqual(self.client.delete(session.path).status, 204)
        self.assertTrue(api.wait_until(lambda: boxes(self.client) == 1, api.SOON), boxes(self.client))

    def test_the_server_leaves_while_candidates_do_not_come(self):
        session = self.pretend(self.client)
        api.Later(lambda: self.client.post(session.path + "/try", candidates=["1", "2"]))
        time.sleep(2)
        self.server.process.send_signal(signal.SIGTERM)
        time.sleep(0.2)
        self.assertEqual(self.server.end(signal.SIGTERM, api.SOON), 0)

    def test_one_that_keeps_its_rights_over_its_branch(self):
        session = self.client.session()
        session.cell(RIGHTS)
        time.sleep(2)
        api.Later(lambda: self.client.post(session.path + "/fork"))
        self.assertTrue(api.wait_until(lambda: session.get("probe").body.endswith(b"end\n"), api.SOON),
                        session.get("probe").body)
        said = dict(line.split() for line in session.get("probe").body.decode().splitlines()[:-1])
        allowed = {"rights": "True", "setsockopt-mark": "done", "names": "done"}
        self.assertEqual({k: v for k, v in said.items() if v != "EPERM"}, allowed)

    @NEEDS_V1
    def test_nobody_else_goes_into_a_branchs_cgroup(self):
        _, init = self.fork(self.s)
        self.assertEqual(os.stat(memory_cgroup(init) + "/tasks").st_mode & 0o777, 0o644)

    @NEEDS_V1
    def test_one_that_goes_into_a_branchs_cgroup_and_stays(self):
        session = self.client.session()
        session.cell(PRETENDER.replace("seen += 1", "for way in fds[11:]: os.write(way, b'0')\n"
                                                    "            for fd in fds[:11]: os.close(fd)"))
        time.sleep(2)

        def ground():
            try:
                return os.path.dirname(memory_cgroup(self.of_depth(inits(self.server))))
            except FileNotFoundError:  # that box has just ended
                return None
        where = api.wait_until(ground, 5)

        def cgroups():
            return len(glob.glob(where + "/box-*"))
        before = cgroups()
        self.assertError(self.client.post(session.path + "/fork"), 503, "no_box")
        self.assertTrue(api.wait_until(lambda: cgroups() == before, 5), (before, cgroups()))
        self.assertEqual(session.cell("1")["status"], "ok")
