"""Libraries that start something of their own: a compiler, a solver, threads."""
import tasks
from tasks import cli


class More(tasks.Case):
    def test_numba(self):
        cell = self.do("""
import numba
import numpy as np

@numba.njit(parallel=True)
def total(values):
    result = 0.0
    for i in numba.prange(len(values)):
        result += values[i] ** 2
    return result

print(total(np.arange(1000.0)))
""")
        self.assertEqual(float(cli.text(cell)), sum(n * n for n in range(1000)))

    def test_pulp(self):
        cell = self.do("""
import pulp
problem = pulp.LpProblem("diet", pulp.LpMinimize)
x, y = pulp.LpVariable("x", lowBound=0, cat="Integer"), pulp.LpVariable("y", lowBound=0)
problem += 3 * x + 2 * y
problem += 2 * x + y >= 7.5
problem += x + 3 * y >= 6
problem.solve(pulp.PULP_CBC_CMD(msg=0))
print(pulp.LpStatus[problem.status], pulp.value(problem.objective))
""")
        best = min(3 * x + 2 * max(7.5 - 2 * x, (6 - x) / 3, 0) for x in range(10))
        self.assertEqual(cli.text(cell).split()[0], "Optimal")
        self.assertAlmostEqual(float(cli.text(cell).split()[1]), best, 6)

    def test_dask(self):
        cell = self.do("""
import dask.dataframe as dd
import pandas as pd
df = dd.from_pandas(pd.DataFrame({"key": list("abc") * 100, "value": range(300)}), npartitions=4)
print(df.groupby("key")["value"].sum().compute().to_dict())
""")
        self.assertEqual(eval(cli.text(cell)), {k: sum(range(n, 300, 3)) for n, k in enumerate("abc")})
