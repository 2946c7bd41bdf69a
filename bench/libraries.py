"""What it is worth to import libraries beforehand, and what each session pays for it."""

import statistics

import report

# As users write it; all of them come with the group "core".
IMPORTS = [
    "import numpy as np",
    "import pandas as pd",
    "import matplotlib.pyplot as plt",
    "import seaborn as sns",
    "from scipy import stats, optimize",
    "from sklearn.linear_model import LinearRegression",
    "from sklearn.ensemble import RandomForestClassifier",
    "import statsmodels.api as sm",
    "import sympy as sp",
    "import networkx as nx",
    "import openpyxl",
    "from bs4 import BeautifulSoup",
    "import requests",
]
# Sets of modules, from nothing to all that a server imports.
SETS = {"nothing": "", "data": "numpy pandas matplotlib.pyplot", "usual": "usual"}
PLOT = "import matplotlib.pyplot as plt; plt.plot([1, 2, 3], label='a'); plt.legend(); plt.title('b'); plt.show()"


def measure(bench):
    """`bench` is the one of bench/run."""
    return {
        "imports": imports(bench),
        "plots": plots(bench),
        "forks": forks(bench),
        "memory": {name: memory(bench, preload) for name, preload in SETS.items()},
    }


def in_sessions(driver, lines):
    """The times of each line's cells, every line in a session of its own."""
    found = []
    for line in lines:
        driver.p.stdin.write(line + "\n")
        driver.p.stdin.flush()
        answer = driver.answer()
        if answer["wrong"]:
            raise SystemExit(f"bench: {line}: it failed")
        found.append(answer["ns"])
    return found


def imports(bench):
    """Milliseconds of the cell: with nothing imported beforehand, and with everything."""
    found = {line: {} for line in IMPORTS}
    for name in ("nothing", "usual"):
        driver = bench.retort("code", preload=SETS[name])
        for line, ns in zip(IMPORTS, in_sessions(driver, IMPORTS)):
            found[line][name] = ns[0] / 1e6
        driver.end()
    return found


def plots(bench):
    """The first plot of a session and its second."""
    driver = bench.retort("code", preload=SETS["usual"])
    ns = in_sessions(driver, ["\t".join([PLOT] * 2)] * bench.size["plots"])
    driver.end()
    return {"first": report.summary([n[0] for n in ns]), "second": report.summary([n[1] for n in ns])}


def forks(bench):
    """A new session to its first result, the sets taking turns."""
    size, found = bench.size, {}
    ways = {"ready": {"pool": 4}, "bare": {"pool": 0}}
    drivers = {
        (name, way): bench.retort("fresh", preload=preload, rounds=size["set_rounds"], n=size["forks"], **options)
        for name, preload in SETS.items()
        for way, options in ways.items()
    }
    for _ in range(size["set_rounds"]):
        for key, driver in drivers.items():
            found.setdefault(key, []).extend(driver.ask()["ns"])
            driver.greeting = driver.answer()
    for driver in drivers.values():
        driver.end()
    return {name: {way: report.summary(found[name, way]) for way in ways} for name in SETS}


def memory(bench, preload):
    found = bench.session_bytes(preload=preload)
    return {moment: statistics.median(bytes_) for moment, bytes_ in found.items()}
