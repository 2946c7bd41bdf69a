"""Statistics, the targets, and the table that a person reads."""

import math
import os
import platform
import re
import subprocess

from procs import read

# Below this number of samples a 99th percentile is only the maximum.
ENOUGH_FOR_P99 = 100


def summary(ns):
    """Of times in nanoseconds, in milliseconds."""
    ordered = sorted(ns)
    n = len(ordered)
    middle = (ordered[(n - 1) // 2] + ordered[n // 2]) / 2
    return {
        "n": n,
        "median_ms": middle / 1e6,
        "p99_ms": ordered[math.ceil(0.99 * n) - 1] / 1e6,
        "min_ms": ordered[0] / 1e6,
        "max_ms": ordered[-1] / 1e6,
    }


def machine():
    """What the figures came from, with nothing that names the host."""
    cpu = re.search(r"^model name\s*:\s*(.+)$", read("/proc/cpuinfo"), re.M)
    unified = os.path.exists("/sys/fs/cgroup/cgroup.controllers")
    memory = int(re.search(r"MemTotal:\s+(\d+)", read("/proc/meminfo")).group(1))
    python = subprocess.run(
        ["/usr/bin/python3", "-c", "import platform; print(platform.python_version())"],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return {
        "cpu": cpu.group(1).strip() if cpu else platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(memory * 1024 / 1e9, 1),
        "kernel": platform.release(),
        "debian": read("/etc/debian_version").strip(),
        "python": python.stdout.strip(),
        "cgroups": "version 2" if unified else "version 1",
    }


def median(results, name):
    return (results.get(name) or {}).get("median_ms")


def ratio(a, b):
    return a / b if a is not None and b else None


def target(name, value, relation, bound, unit):
    met = value is not None and (value <= bound if relation == "≤" else value >= bound)
    return {
        "name": name,
        "value": value,
        "relation": relation,
        "bound": bound,
        "unit": unit,
        "met": met,
    }


def targets(results):
    """What retort promises, each line with what was measured."""
    fork, cold, ready, cell, bubblewrap, ipykernel, ipykernel_cell = (
        median(results, name)
        for name in ("fork", "retort_cold", "retort_ready", "retort_cell")
        + ("bubblewrap", "ipykernel", "ipykernel_cell")
    )
    memory, churn, many, runs, at_once, files = (
        results.get(name) or {}
        for name in ("memory", "churn", "many", "http_run", "http_at_once", "files")
    )
    http_cell = median(results, "http_cell")
    states = results.get("states") or {}
    libraries = results.get("libraries") or {}
    plots = libraries.get("plots") or {}
    usual = max((libraries.get("memory") or {}).get("usual", {}).values(), default=None)
    moments = [memory.get(f"retort_{moment}_bytes") for moment in ("new", "used", "ready")]
    mine, theirs = max(filter(None, moments), default=None), memory.get("ipykernel_bytes")
    left = len(churn["faults"]) if churn else None
    return [
        target("new session, no ready box / plain fork", ratio(cold, fork), "≤", 1.6, "×"),
        target("new session, ready box / plain fork", ratio(ready, fork), "≤", 0.5, "×"),
        target("bubblewrap / new session, ready box", ratio(bubblewrap, ready), "≥", 500, "×"),
        target("ipykernel / new session, ready box", ratio(ipykernel, ready), "≥", 500, "×"),
        target("a cell: ipykernel / retort", ratio(ipykernel_cell, cell), "≥", 15, "×"),
        target("private memory of an idle session", mine and mine / 1e6, "≤", 4, "MB"),
        target("private memory: ipykernel / retort", ratio(theirs, mine), "≥", 25, "×"),
        target("fresh boxes used once and destroyed", churn.get("per_second"), "≥", 250, "/s"),
        target("  wrong answers, and things left over", left, "≤", 0, ""),
        target("sessions alive at once, all correct", many.get("correct"), "≥", 500, ""),
        target("a cell: ipykernel / retort, HTTP", ratio(ipykernel_cell, http_cell), "≥", 10, "×"),
        target("one-shot runs over HTTP, 8 clients", runs.get("per_second"), "≥", 200, "/s"),
        target("sessions answering at once over HTTP", at_once.get("sessions"), "≥", 64, ""),
        target("a cell 1+1: states kept / not kept", state_ratio(states, "cell_on", "cell_off"), "≤", 1.15, "×"),
        target("going back, 100 MB", median(states, "frame_back"), "≤", 10, "ms"),
        target("a branch, 100 MB / plain fork", state_ratio(states, "frame_branch", "frame_fork"), "≤", 3, "×"),
        target("private memory, the usual modules imported", usual and usual / 1e6, "≤", 6, "MB"),
        target("a plot: the first / the second", ratio(median(plots, "first"), median(plots, "second")), "≤", 2, "×"),
        target("upload: retort / nginx", speed_ratio(files, "put"), "≥", 0.5, "×"),
        target("download: retort / nginx", speed_ratio(files, "get"), "≥", 0.5, "×"),
    ]


def state_ratio(states, a, b):
    return ratio(median(states, a), median(states, b))


def speed_ratio(files, verb):
    speeds = files.get("mb_per_second") or {}
    return ratio(speeds.get(f"retort_{verb}"), speeds.get(f"nginx_{verb}"))


# ---- the table ----

# A title, what the ratios are to, and the lines.
TIMES = [
    (
        "New session to first result",
        "fork",
        [
            ("fork_bare", "plain fork, bare eval"),
            ("fork", "plain fork, the same cell (the limit)"),
            ("fork_ipython", "plain fork, IPython's own run_cell"),
            ("retort_ready", "retort, ready box"),
            ("retort_cold", "retort, no ready box, a blank one"),
            ("retort_bare", "retort, nothing made beforehand"),
            ("fork_idle", "plain fork, after 50 ms of idleness"),
            ("retort_ready_idle", "retort, ready box, after 50 ms"),
            ("retort_cold_idle", "retort, a blank box, after 50 ms"),
            ("bubblewrap", "bubblewrap, python3"),
            ("ipykernel", "ipykernel, jupyter_client"),
            ("gvisor", "gVisor, runsc do, python3"),
        ],
    ),
    (
        "A cell 1+1 in a live session",
        "retort_cell",
        [
            ("retort_cell", "retort"),
            ("http_cell", "retort, over HTTP"),
            ("ipykernel_cell", "ipykernel, jupyter_client"),
        ],
    ),
    (
        "A request to its cell's first output",
        "http_cell",
        [("http_stream", "retort, server-sent events")],
    ),
]


def time_line(figure, label, base):
    if figure.get("reason"):
        return f"  {label:<38} {'–':>11}   {figure['reason']}"
    p99 = f"{figure['p99_ms']:,.2f}{' ' if figure['n'] >= ENOUGH_FOR_P99 else '*'}"
    times = ratio(figure["median_ms"], base)
    times = "–" if times is None else f"{times:,.2f}"
    return f"  {label:<38} {figure['median_ms']:>11,.3f} {p99:>11} {figure['n']:>6} {times:>10}"


def times_table(results):
    lines = []
    for title, base, rows in TIMES:
        to = "× " + base.split("_")[0]
        lines += ["", f"{title:<40} {'median, ms':>11} {'p99, ms':>10}  {'n':>6} {to:>10}"]
        for name, label in rows:
            if name in results:
                lines.append(time_line(results[name], label, median(results, base)))
    return lines + ["  * the maximum: too few samples for a percentile"]


def megabytes(n):
    return "–" if n is None else f"{n / 1e6:,.2f} MB"


def memory_table(results):
    m, many = results.get("memory") or {}, results.get("many") or {}
    rows = [
        ("retort, new", m.get("retort_new_bytes")),
        ("retort, after one cell", m.get("retort_used_bytes")),
        ("retort, ready box", m.get("retort_ready_bytes")),
        ("ipykernel, after the imports", m.get("ipykernel_bytes")),
        ("retort, share of all that many need", many.get("bytes_each")),
    ]
    lines = ["", "Private memory of an idle session"]
    return lines + [f"  {label:<38} {megabytes(n):>11}" for label, n in rows]


def load_table(results):
    churn, many = results.get("churn"), results.get("many")
    lines = ["", "Under load"]
    if churn:
        lines.append(
            f"  {churn['made']:,} fresh boxes in {churn['elapsed_s']:.1f} s, {churn['inflight']}"
            f" at a time: {churn['per_second']:,.0f} a second, {churn['wrong']} wrong"
        )
        if "forks_per_second" in churn:
            share = churn["per_second"] / churn["forks_per_second"]
            lines.append(
                f"    plain forks from a zygote on each core (the limit):"
                f" {churn['forks_per_second']:,.0f} a second; retort reaches {share:.2f} of it"
            )
        lines += [f"    LEFT OVER: {fault}" for fault in churn["faults"]]
    if many:
        lines.append(
            f"  {many['sessions']} sessions alive at once: {many['correct']} correct;"
            f" made in {many['open_s']:.1f} s, asked in {many['ask_s']:.1f} s,"
            f" ended in {many['close_s']:.1f} s; {megabytes(many['bytes_total'])} in all"
        )
    return lines


def server_table(results):
    runs, at_once, files = (results.get(f) for f in ("http_run", "http_at_once", "files"))
    lines = ["", "The server"]
    if runs:
        lines.append(
            f"  {runs['n']:,} one-shot runs in {runs['elapsed_s']:.1f} s, {runs['clients']}"
            f" clients: {runs['per_second']:,.0f} a second; median {runs['median_ms']:.1f} ms,"
            f" p99 {runs['p99_ms']:.1f} ms"
        )
    if at_once:
        lines.append(
            f"  {at_once['sessions']} sessions answering at once, {at_once['n']:,} cells without an"
            f" error: {at_once['per_second']:,.0f} a second; median {at_once['median_ms']:.1f} ms,"
            f" p99 {at_once['p99_ms']:.1f} ms"
        )
    for verb, what in (("put", "in"), ("get", "out")) if files else ():
        if files.get("reason"):
            lines.append(f"  files: {files['reason']}")
            break
        speeds = files["mb_per_second"]
        lines.append(
            f"  a file of {files['bytes'] / 1e6:,.0f} MB {what}: retort"
            f" {speeds[f'retort_{verb}']:,.0f} MB/s, nginx {speeds[f'nginx_{verb}']:,.0f} MB/s:"
            f" {speed_ratio(files, verb):.2f} ×"
        )
    return lines if runs else []


# A line, and what its ratio is to.
STATES = [
    ("cell_off", "a cell 1+1, no states kept", "cell_off"),
    ("cell_on", "a cell 1+1", "cell_off"),
    ("change_off", "a cell x = 1, no states kept", "change_off"),
    ("change_on", "a cell x = 1, one after the other", "change_off"),
    ("frame_fork", "a frame of 100 MB: plain fork", "frame_fork"),
    ("frame_stands", "  a branch, until it stands", "frame_fork"),
    ("frame_branch", "  a branch, to its first result", "frame_fork"),
    ("frame_at_once", "  16 branches, to all their results", "frame_fork"),
    ("frame_back", "  going back by one cell", "frame_fork"),
]


def states_table(results):
    states = results.get("states")
    if not states:
        return []
    lines = ["", f"{'States of a session, over HTTP':<40} {'median, ms':>11} {'p99, ms':>10}  {'n':>6} {'×':>10}"]
    lines += [time_line(states[name], label, median(states, base)) for name, label, base in STATES]
    lines += ["", "  heap, MB   keep, ms   back, ms   branch, ms"]
    return lines + [
        f"  {row['mb']:>8,} {row['keep']:>10,.1f} {row['back']:>10,.1f} {row['branch']:>12,.1f}" for row in states["growth"]
    ]


def libraries_table(results):
    found = results.get("libraries")
    if not found:
        return []
    lines = ["", f"{'Libraries, in a session':<58} {'imported':>9} {'beforehand':>11}   ms"]
    lines += [
        f"  {line:<56} {ms['nothing']:>9,.1f} {ms['usual']:>11,.2f}" for line, ms in found["imports"].items()
    ]
    plots = found["plots"]
    lines.append(
        f"  the first plot {plots['first']['median_ms']:,.1f} ms, the second {plots['second']['median_ms']:,.1f} ms"
    )
    lines += ["", f"{'Imported beforehand':<22} {'ready box, ms':>14} {'no ready box, ms':>17} {'private memory':>15}"]
    for name, ways in found["forks"].items():
        lines.append(
            f"  {name:<20} {ways['ready']['median_ms']:>14,.2f} {ways['bare']['median_ms']:>17,.2f}"
            f" {megabytes(max(found['memory'][name].values())):>15}"
        )
    return lines


def targets_table(list_):
    lines = ["", f"{'Targets':<48} {'measured':>12} {'target':>10}"]
    for t in list_:
        value = "–" if t["value"] is None else f"{t['value']:,.2f} {t['unit']}"
        bound = f"{t['relation']} {t['bound']:,} {t['unit']}"
        verdict = "met" if t["met"] else "not measured" if t["value"] is None else "NOT MET"
        lines.append(f"  {t['name']:<46} {value:>12} {bound:>10}   {verdict}")
    return lines


def table(report):
    m, results = report["machine"], report["results"]
    head = (
        f"{m['cpu']}, {m['cores']} cores, {m['memory_gb']} GB; Linux {m['kernel']},"
        f" Debian {m['debian']}, Python {m['python']}, cgroups {m['cgroups']}"
    )
    lines = [head, f"{report['modules']} imported in all; one run, contestants taking turns"]
    lines += times_table(results) + memory_table(results) + load_table(results)
    lines += server_table(results) + states_table(results) + libraries_table(results)
    return "\n".join(lines + targets_table(report["targets"]))
