/* trials: see trials.h.
 *
 * Each runs in a box of its own. The code is ours and the box is fresh, so its word can be taken:
 * doctor tells what a host enforces, it does not test an adversary (tests/box does).
 */
#include "cli/trials.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "guest/guest.h"

/* For all of them: say(true, "…") and the like. */
static const char prelude[] =
    "import os, socket, errno, ctypes\n"
    "def say(held, text): print('held: ' if held else 'broke: ', text, sep='', flush=True)\n"
    "def refused(act, *codes):\n"
    "    try: act()\n"
    "    except OSError as e: return e.errno in codes or not codes\n"
    "    return False\n"
    "def status():\n"
    "    lines = open('/proc/self/status').read().splitlines()\n"
    "    return dict((k, v.split()) for k, v in (l.split(':', 1) for l in lines))\n";

static const struct trial table[] = {
    {
        .name = "user",
        .claim = "code runs as uid 1000 without any capability",
        .code = "s = status()\n"
                "caps = [k for k in ('CapInh', 'CapPrm', 'CapEff', 'CapAmb') if int(s[k][0], 16)]\n"
                "ids = sorted(set(s['Uid'] + s['Gid']))\n"
                "say(ids == ['1000'] and not caps, f\"ids {' '.join(ids)}, \"\n"
                "    f\"{', '.join(caps) if caps else 'no capabilities'}\")\n",
        .essential = true,
    },
    {
        .name = "no new privileges",
        .claim = "a setuid program gains nothing",
        .code = "v = status()['NoNewPrivs'][0]\nsay(v == '1', 'NoNewPrivs is ' + v)\n",
        .essential = true,
    },
    {
        .name = "system calls",
        .claim = "unshare, mount, ptrace, io_uring are refused",
        .code = "libc = ctypes.CDLL(None, use_errno=True)\n"
                "calls = {'unshare': lambda: libc.unshare(0x10000000),\n"
                "         'mount': lambda: libc.mount(b'x', b'/tmp', b'tmpfs', 0, None),\n"
                "         'ptrace': lambda: libc.ptrace(0, 0, None, None),\n"
                "         'setns': lambda: libc.setns(0, 0),\n"
                "         'io_uring': lambda: libc.syscall(425, 1, None)}\n"
                "through = []\n"
                "for name, call in calls.items():\n"
                "    ctypes.set_errno(0)\n"
                "    r = call()\n"
                "    if r != -1 or ctypes.get_errno() not in (errno.EPERM, errno.ENOSYS):\n"
                "        through.append(name)\n"
                "mode = status()['Seccomp'][0]\n"
                "say(mode == '2' and not through, f'seccomp mode {mode}, ' + (\n"
                "    'let through: ' + ', '.join(through) if through else 'all refused'))\n",
        .remedy = "the kernel needs CONFIG_SECCOMP_FILTER",
        .essential = true,
    },
    {
        .name = "namespaces",
        .claim = "all seven kinds are the box's own",
        .code = "shared = [k for k, v in host.items()\n"
                "          if os.path.lexists('/proc/self/ns/' + k)\n"
                "          and os.readlink('/proc/self/ns/' + k) == v]\n"
                "say(not shared, 'shared with the host: ' + ', '.join(shared) if shared\n"
                "    else f'{len(host)} of its own')\n",
        .remedy = "see \"retort doctor --steps\", box-namespaces",
        .essential = true,
    },
    {
        .name = "network",
        .claim = "a loopback of its own, and no way out",
        .code = "nets = sorted(l.split(':')[0].strip() for l in\n"
                "              open('/proc/self/net/dev').read().splitlines()[2:])\n"
                "def reach():\n"
                "    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:\n"
                "        s.connect(('192.0.2.1', 53))\n"
                "out = not refused(reach)\n"
                "a = socket.create_server(('127.0.0.1', 0))\n"
                "b = socket.create_connection(a.getsockname()); b.close(); a.close()\n"
                "say(nets == ['lo'] and not out, 'interfaces: ' + ', '.join(nets) +\n"
                "    (', and a way out' if out else ', no way out'))\n",
        .essential = true,
    },
    {
        .name = "host's files",
        .claim = "the system is read-only, the host's own not there",
        .code =
            "w = [p for p in ('/usr/x', '/etc/x', '/bin/x', '/x')\n"
            "     if not refused(lambda: open(p, 'w'))]\n"
            "homes = os.listdir('/home') if os.path.isdir('/home') else []\n"
            "seen = [h for h in homes if h != 'user']\n"
            "seen += [p for p in ('/etc/shadow', '/etc/passwd-', '/var/log', '/boot')\n"
            "         if os.path.lexists(p)]\n"
            "say(not w and not seen, 'writable: ' + ' '.join(w) if w else\n"
            "    'seen: ' + ' '.join(seen) if seen else 'read-only, and nothing of the host')\n",
        .essential = true,
    },
    {
        .name = "processes",
        .claim = "/proc shows the box's own processes only",
        .code = "p = sorted(int(d) for d in os.listdir('/proc') if d.isdigit())\n"
                "say(len(p) <= 4 and p[0] == 1 and os.getpid() < 1000,\n"
                "    f'{len(p)} processes, this one is {os.getpid()}')\n",
        .essential = true,
    },
    {
        .name = "descriptors",
        .claim = "none of ours leaks into a box",
        .code =
            "fds = sorted(int(f) for f in os.listdir('/proc/self/fd'))\n"
            "extra = [f for f in fds if f > 5]\n" /* the channel and the line to init: see box.h */
            "live = []\n"
            "for f in extra:\n"
            "    try: os.fstat(f); live.append(f)\n"
            "    except OSError: pass\n"
            "say(not live, f'besides stdio and the channels: {live}' if live\n"
            "    else 'stdio, one channel and a line to init')\n",
        .essential = true,
    },
    {
        .name = "wall time",
        .claim = "an endless loop is interrupted, variables stay",
        .limit = "timeout",
        .value = "1",
        .code = "kept = 42\nwhile True: pass\n",
        .kind = LIMIT_KIND_WALL,
        .essential = true,
    },
    {
        .name = "CPU time",
        .claim = "computing beyond --cpu is stopped",
        .limit = "cpu",
        .value = "0.5",
        .code = "while True: pass\n",
        .kind = LIMIT_KIND_CPU,
        .essential = true,
    },
    {
        .name = "memory",
        .claim = "200 MB in a box of 64 MB are stopped",
        .limit = "memory",
        .value = "64m",
        .code = "x = bytearray(200 << 20)\nsay(False, 'they were given')\n",
        .kind = LIMIT_KIND_MEMORY,
        .essential = true,
    },
    {
        .name = "processes and threads",
        .claim = "no more than --pids can be made",
        .limit = "pids",
        .value = "16",
        .code = "import threading\n"
                "go, n = threading.Event(), 0\n"
                "try:\n"
                "    while n < 100:\n"
                "        threading.Thread(target=go.wait, daemon=True).start()\n"
                "        n += 1\n"
                "except RuntimeError: pass\n"
                "go.set()\n"
                "say(n < 16, f'{n} threads could be started with a limit of 16')\n",
        .essential = true,
    },
    {
        .name = "disk",
        .claim = "the workspace holds no more than --disk",
        .limit = "disk",
        .value = "1m",
        .code = "def fill():\n"
                "    with open('big', 'wb') as f: f.write(bytes(4 << 20))\n"
                "say(refused(fill, errno.ENOSPC), '4 MB in a workspace of 1 MB')\n",
        .essential = true,
    },
    {
        .name = "files",
        .claim = "the workspace holds no more files than --files",
        .limit = "files",
        .value = "64",
        .code = "def fill():\n"
                "    for i in range(100): open(str(i), 'w').close()\n"
                "say(refused(fill, errno.ENOSPC), '100 files in a workspace for 64')\n",
        .essential = true,
    },
    {
        .name = "output",
        .claim = "text beyond --output is counted, not kept",
        .limit = "output",
        .value = "1k",
        .code = "print('x' * 100000)\n",
        .kind = LIMIT_KIND_OUTPUT,
        .essential = true,
    },
    {
        .name = "share of cores",
        .claim = "a box gets no more than --cpus",
        .limit = "cpus",
        .value = "0.2",
        .code = "import time\n"
                "w, c = time.monotonic(), time.process_time()\n"
                "while time.monotonic() - w < 1: pass\n"
                "share = (time.process_time() - c) / (time.monotonic() - w)\n"
                "say(share < 0.5, f'{share:.2f} of a core with a limit of 0.2')\n",
        .needs_cgroup = true,
    },
};

const struct trial *trials_get(unsigned i)
{
    return i < sizeof(table) / sizeof(table[0]) ? &table[i] : NULL;
}

/* ---- doing one ---- */

/* What the cell printed, as one line without its newline. */
static void first_line(const struct cell *c, char *ret, unsigned size)
{
    ret[0] = '\0';
    for (unsigned i = 0; i < c->n_outputs; i++) {
        if (c->outputs[i].kind != OUTPUT_STDOUT)
            continue;
        snprintf(ret, size, "%.*s", (int)strcspn(c->outputs[i].text, "\n"), c->outputs[i].text);
        return;
    }
}

static enum trial_result judge_words(const struct cell *c, char *detail, unsigned size)
{
    char line[256];

    first_line(c, line, sizeof(line));
    if (strncmp(line, "held: ", 6) == 0) {
        snprintf(detail, size, "%s", line + 6);
        return TRIAL_HELD;
    }
    if (strncmp(line, "broke: ", 7) == 0) {
        snprintf(detail, size, "%s", line + 7);
        return TRIAL_BROKE;
    }
    snprintf(detail, size, "the trial ended as \"%s\"%s%s%s%s", cell_status_name(c->status),
             c->error.name ? ": " : "", c->error.name ? c->error.name : "",
             c->error.value ? ": " : "", c->error.value ? c->error.value : "");
    return TRIAL_FAILED;
}

static enum trial_result judge_limit(const struct trial *t, const struct cell *c, char *detail,
                                     unsigned size)
{
    const char *name = c->error.name ? c->error.name : "";

    if (c->limit.kind == t->kind) {
        snprintf(detail, size, "limit %s, after %.0f ms%s", limit_kind_name(t->kind),
                 c->receipt.wall_ms, c->session_ended ? ", killed" : "");
        return TRIAL_HELD;
    }
    if (t->kind == LIMIT_KIND_MEMORY && strcmp(name, "MemoryError") == 0) {
        snprintf(detail, size, "refused with MemoryError");
        return TRIAL_HELD;
    }
    if (judge_words(c, detail, size) == TRIAL_HELD)
        snprintf(detail, size, "nothing stopped it");
    return TRIAL_BROKE;
}

/* After the wall limit the interpreter must still be there with its variables. */
static int check_kept(struct guest *g, enum trial_result *ret, char *detail, unsigned size,
                      struct err *e)
{
    struct cell *c;

    if (guest_ask(g, "say(kept == 42, 'interrupted, and variables stayed')", &c, e) < 0)
        return -1;
    *ret = judge_words(c, detail, size);
    cell_free(c);
    return 0;
}

/* Our own namespaces, for the box to compare with. */
static void add_host_namespaces(struct buf *code)
{
    static const char *const kinds[] = {"user", "pid", "mnt", "net", "ipc", "uts", "cgroup"};

    buf_add_text(code, "host = {");
    for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        char path[64], target[64];
        snprintf(path, sizeof(path), "/proc/self/ns/%s", kinds[i]);
        ssize_t n = readlink(path, target, sizeof(target) - 1);
        if (n > 0)
            buf_add_fmt(code, "'%s': '%.*s', ", kinds[i], (int)n, target);
    }
    buf_add_text(code, "}\n");
}

static int try_in(struct guest *g, const struct trial *t, enum trial_result *ret, char *detail,
                  unsigned size, struct err *e)
{
    cleanup_buf struct buf code = {0};
    struct cell *c;

    buf_add_text(&code, prelude);
    add_host_namespaces(&code);
    if (guest_ask(g, buf_text(&code), &c, e) < 0)
        return -1;
    cell_free(c);
    if (guest_ask(g, t->code, &c, e) < 0)
        return -1;
    bool by_limit = t->kind != LIMIT_KIND_NONE;
    *ret = by_limit ? judge_limit(t, c, detail, size) : judge_words(c, detail, size);
    cell_free(c);
    if (t->kind == LIMIT_KIND_WALL && *ret == TRIAL_HELD)
        return check_kept(g, ret, detail, size, e);
    return 0;
}

int trials_run(const struct trial *t, struct owner *o, enum trial_result *ret, char *ret_detail,
               unsigned size, struct err *e)
{
    struct limits limits;
    struct guest g;

    limits_default(&limits);
    limits.timeout_ms = 20000;
    if (t->limit && limits_set(&limits, t->limit, t->value, e) < 0)
        bug("%s", e->text);
    int turn = guest_open(&g, o, &limits, NULL, e);
    if (turn > 0)
        return err_set(e, EINTR, "stopped");
    if (turn < 0) {
        *ret = TRIAL_FAILED;
        snprintf(ret_detail, size, "%s", e->text);
        return 0;
    }
    int r = try_in(&g, t, ret, ret_detail, size, e);
    if (r < 0 && e->code != EINTR) { /* this box, not us */
        *ret = TRIAL_FAILED;
        snprintf(ret_detail, size, "%s", e->text);
        r = 0;
    }
    guest_close(&g);
    return r;
}
