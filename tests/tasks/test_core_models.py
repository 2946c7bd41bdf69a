"""Models, symbols, fractals."""
import csv
import math
import random

import numpy as np
import sympy
import tasks
from tasks import cli, last_json


class Models(tasks.Case):
    def test_regression_and_classifier_with_a_report(self):
        rng = random.Random(11)
        with open(self.path("homes.csv"), "w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["area", "rooms", "age", "price", "sold"])
            for _ in range(600):
                area, rooms, age = rng.uniform(30, 200), rng.randint(1, 6), rng.uniform(0, 80)
                price = 50 + 3 * area + 10 * rooms - 0.7 * age + rng.gauss(0, 12)
                rows.writerow([area, rooms, age, price, int(area / 100 - age / 40 + rng.gauss(0, 0.35) > 0)])
        cell = self.do("""
import json
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression
from sklearn.metrics import classification_report, confusion_matrix, r2_score
from sklearn.model_selection import GridSearchCV, train_test_split

df = pd.read_csv('homes.csv')
X = df[['area', 'rooms', 'age']]
X_train, X_test, y_train, y_test = train_test_split(X, df['price'], test_size=0.25, random_state=42)
model = LinearRegression().fit(X_train, y_train)
r2 = r2_score(y_test, model.predict(X_test))

whole = LinearRegression().fit(X, df['price'])

X_train, X_test, y_train, y_test = train_test_split(X, df['sold'], test_size=0.25, random_state=42, stratify=df['sold'])
search = GridSearchCV(RandomForestClassifier(random_state=0), {'n_estimators': [20, 40]}, cv=3)
search.fit(X_train, y_train)
predicted = search.predict(X_test)
print(classification_report(y_test, predicted, target_names=['open', 'sold']))
print(json.dumps({'coef': whole.coef_.tolist(), 'intercept': whole.intercept_, 'r2': r2,
                  'truth': y_test.tolist(), 'predicted': predicted.tolist(),
                  'matrix': confusion_matrix(y_test, predicted).tolist()}))
""", self.path("homes.csv"))
        with open(self.path("homes.csv")) as file:
            table = np.array([[float(x) for x in row] for row in list(csv.reader(file))[1:]])
        found = last_json(cell)
        design = np.column_stack([table[:, :3], np.ones(len(table))])
        *coef, intercept = np.linalg.solve(design.T @ design, design.T @ table[:, 3])
        np.testing.assert_allclose(found["coef"], coef, rtol=1e-6)
        self.assertAlmostEqual(found["intercept"], intercept, 5)
        self.assertGreater(found["r2"], 0.95)
        pairs = list(zip(found["truth"], found["predicted"]))
        self.assertEqual(found["matrix"], [[pairs.count((t, p)) for p in (0, 1)] for t in (0, 1)])
        right = sum(t == p for t, p in pairs) / len(pairs)
        self.assertGreater(right, 0.75)
        self.assertRegex(cli.text(cell), rf"accuracy +{right:.2f} +150\n")
        precision = pairs.count((1, 1)) / found["predicted"].count(1)
        recall = pairs.count((1, 1)) / found["truth"].count(1)
        self.assertRegex(cli.text(cell), rf"sold +{precision:.2f} +{recall:.2f} ")

    def test_workers_of_joblib(self):
        """n_jobs starts other Pythons, which ask psutil for their memory."""
        cell = cli.run("run", "--json", "--memory", "700m", "-", input="""
from joblib import Parallel, delayed
from math import sqrt
print(sum(Parallel(n_jobs=2)(delayed(sqrt)(i) for i in range(100))))
import psutil
memory = psutil.virtual_memory()
print(memory.total, memory.available, psutil.Process().memory_info().rss, psutil.cpu_percent(interval=0.05))
""").json
        self.assertEqual((cell["status"], cli.text(cell, "stderr")), ("ok", ""), cell)
        self.tell(cell)
        total, words = cli.text(cell).split("\n")[:2]
        self.assertAlmostEqual(float(total), sum(map(math.sqrt, range(100))), 6)
        limit, available, used, percent = map(float, words.split())
        self.assertEqual(limit, 700 << 20)
        self.assertTrue(limit / 2 < available < limit, words)
        self.assertTrue(1 << 20 < used < limit, words)
        self.assertTrue(0 <= percent <= 100, words)

    def test_a_differential_equation_in_symbols(self):
        cell = self.do("""
import sympy as sp
t = sp.symbols('t')
y = sp.Function('y')
equation = sp.Eq(y(t).diff(t, 2) + 3*y(t).diff(t) + 2*y(t), sp.exp(-3*t))
solution = sp.dsolve(equation, y(t), ics={y(0): 1, y(t).diff(t).subs(t, 0): 0})
print(solution.rhs)
solution
""")
        t = sympy.symbols("t")
        found = sympy.sympify(cli.text(cell), locals={"t": t})
        rest = found.diff(t, 2) + 3 * found.diff(t) + 2 * found - sympy.exp(-3 * t)
        self.assertEqual(sympy.simplify(rest), 0)
        self.assertEqual([found.subs(t, 0), found.diff(t).subs(t, 0)], [1, 0])
        latex = cell["outputs"][-1]["data"]["text/latex"]
        self.assertIn("e^{- t}", latex)
        self.assertIn(r"y{\left(t \right)}", latex)

    def test_mandelbrot_1000_by_1500(self):
        self.do("""
import numpy as np
import matplotlib.pyplot as plt

width, height, max_iter = 1500, 1000, 30
x = np.linspace(-2.25, 0.75, width)
y = np.linspace(-1, 1, height)
C = x[np.newaxis, :] + 1j * y[:, np.newaxis]
Z = np.zeros_like(C)
counts = np.full(C.shape, max_iter)
alive = np.ones(C.shape, dtype=bool)
for i in range(max_iter):
    Z[alive] = Z[alive] ** 2 + C[alive]
    escaped = alive & (np.abs(Z) > 2)
    counts[escaped] = i
    alive &= ~escaped
np.save("counts.npy", counts)
plt.imsave("mandelbrot.png", counts, cmap="magma")
""")
        counts = np.load(self.out("counts.npy"))
        picture = self.picture("mandelbrot.png")
        self.assertEqual(picture.shape, (1000, 1500, 3))

        def escape(c, z=0):
            for i in range(30):
                z = z * z + c
                if abs(z) > 2:
                    return i
            return 30

        rng = random.Random(12)
        for _ in range(300):
            row, column = rng.randrange(1000), rng.randrange(1500)
            c = complex(-2.25 + 3 * column / 1499, -1 + 2 * row / 999)
            self.assertLessEqual(abs(counts[row, column] - escape(c)), 1, c)
        # Each count has one colour, and the set itself, a tenth to a third of the picture, has the lightest.
        inside = counts == 30
        self.assertTrue(0.1 < inside.mean() < 0.4, inside.mean())
        self.assertEqual(len(np.unique(picture[inside], axis=0)), 1)
        self.assertGreater(picture[inside][0].sum(), picture[0, 0].sum() + 300)
        self.assertEqual(len(np.unique(picture.reshape(-1, 3), axis=0)), len(np.unique(counts)))
