"""Tables: traffic, cleaning, sales, workbooks, SQL."""
import csv
import datetime
import random
import sqlite3
import statistics
from collections import defaultdict

import numpy as np
import openpyxl
import tasks
from tasks import cli, coloured, last_json, shown


def write_csv(case, name, header, rows):
    with open(case.path(name), "w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return case.path(name)


class Tables(tasks.Case):
    def test_web_traffic_to_trends_and_a_line_chart(self):
        rng = random.Random(1)
        start = datetime.date(2024, 1, 1)
        days = [start + datetime.timedelta(n) for n in range(366)]
        visits = [int(4000 + 11 * n + (900 if day.weekday() < 5 else -1200) + rng.gauss(0, 150))
                  for n, day in enumerate(days)]
        path = write_csv(self, "traffic.csv", ["date", "visits", "bounce_rate"],
                         [(day, v, round(rng.uniform(0.3, 0.6), 3)) for day, v in zip(days, visits)])
        cell = self.do("""
import pandas as pd
import matplotlib.pyplot as plt
import numpy as np
import json

df = pd.read_csv('/mnt/data/traffic.csv', parse_dates=['date']).set_index('date')
monthly = df['visits'].resample('M').sum()
df['weekly'] = df['visits'].rolling(7).mean()
slope, intercept = np.polyfit(np.arange(len(df)), df['visits'], 1)
by_day = df.groupby(df.index.day_name())['visits'].mean()

fig, ax = plt.subplots(figsize=(12, 5))
ax.plot(df.index, df['visits'], alpha=0.4, label='Daily visits')
ax.plot(df.index, df['weekly'], color='red', linewidth=2, label='7-day average')
ax.set_title('Website traffic 2024')
ax.set_ylabel('Visits')
ax.legend()
plt.tight_layout()
plt.savefig('/mnt/data/traffic.png', dpi=100)
plt.show()
print(json.dumps({'slope': slope, 'monthly': monthly.tolist(), 'best': by_day.idxmax(),
                  'growth': (monthly.iloc[-1] / monthly.iloc[0] - 1) * 100}))
""", path)
        found = last_json(cell)
        months = defaultdict(int)
        for day, v in zip(days, visits):
            months[day.month] += v
        self.assertEqual(found["monthly"], list(months.values()))
        line = statistics.linear_regression(range(366), visits)
        self.assertAlmostEqual(found["slope"], line.slope, 6)
        self.assertAlmostEqual(found["growth"], (months[12] / months[1] - 1) * 100, 6)
        weekday = defaultdict(list)
        for day, v in zip(days, visits):
            weekday[day.strftime("%A")].append(v)
        self.assertEqual(found["best"], max(weekday, key=lambda name: statistics.mean(weekday[name])))
        # The average is red, and rises from left to right.
        picture = self.picture("traffic.png")
        self.assertEqual(picture.shape[:2], (500, 1200))
        down, across = np.nonzero(coloured(picture, (255, 0, 0)))
        left, right = down[across < 300].mean(), down[across > 1000].mean()
        self.assertGreater(left - right, 100)
        self.assertEqual(len(shown(cell)), 1)

    def test_cleaning_with_iqr_outliers_and_a_histogram(self):
        rng = random.Random(2)
        values = [round(rng.gauss(50, 8), 2) for _ in range(1000)] + [250.0, 310.5, -120.0]
        rows = [(n, v, rng.choice(["north", " North ", "SOUTH", "south"])) for n, v in enumerate(values)]
        rows += rows[:20] + [(2000 + n, "", "south") for n in range(7)]
        path = write_csv(self, "measured.csv", ["id", "value", "region"], rows)
        cell = self.do("""
import pandas as pd, numpy as np, json
import matplotlib.pyplot as plt
df = pd.read_csv("measured.csv")
before = len(df)
df = df.drop_duplicates().dropna(subset=["value"])
df["region"] = df["region"].str.strip().str.lower()
q1, q3 = df["value"].quantile([0.25, 0.75])
iqr = q3 - q1
keep = df["value"].between(q1 - 1.5 * iqr, q3 + 1.5 * iqr)
outliers, clean = df[~keep], df[keep]
counts, edges, _ = plt.hist(clean["value"], bins=20, color="steelblue", edgecolor="white")
plt.title("Distribution of value")
plt.xlabel("value"); plt.ylabel("count")
plt.show()
clean.to_csv("clean.csv", index=False)
print(f"{before} rows, {len(outliers)} outliers")
print(json.dumps({"outliers": sorted(outliers["value"]), "mean": clean["value"].mean(),
                  "counts": counts.tolist(), "edges": edges.tolist(), "regions": sorted(clean["region"].unique())}))
""", path)
        found = last_json(cell)
        q1, _, q3 = statistics.quantiles(values, n=4, method="inclusive")
        low, high = q1 - 1.5 * (q3 - q1), q3 + 1.5 * (q3 - q1)
        kept = [v for v in values if low <= v <= high]
        self.assertEqual(found["outliers"], sorted(v for v in values if not low <= v <= high))
        self.assertIn(250.0, found["outliers"])
        self.assertAlmostEqual(found["mean"], statistics.fmean(kept), 9)
        self.assertEqual(found["regions"], ["north", "south"])
        with open(self.out("clean.csv")) as file:
            self.assertEqual([float(row["value"]) for row in csv.DictReader(file)], kept)
        edges = found["edges"]
        bins = [sum(a <= v < b for v in kept) for a, b in zip(edges, edges[1:])]
        bins[-1] += sum(v == edges[-1] for v in kept)
        self.assertEqual(found["counts"], bins)
        # The tallest bar of the picture stands where most values are.
        [picture] = shown(cell)
        columns = coloured(picture, (70, 130, 180), 12).sum(axis=0)
        at = np.nonzero(columns)[0]
        tallest = (columns.argmax() - at[0]) / (at[-1] - at[0]) * len(bins)
        self.assertAlmostEqual(tallest, bins.index(max(bins)) + 0.5, delta=0.75)

    def test_five_best_cities_of_a_sales_table(self):
        rng = random.Random(3)
        cities = ["Wien", "Graz", "Linz", "Salzburg", "Innsbruck", "Villach", "Wels", "Dornbirn", "Steyr"]
        rows = [(n, rng.choice(cities), rng.randint(1, 12), round(rng.uniform(2, 90), 2)) for n in range(3000)]
        path = write_csv(self, "sales.csv", ["order", "city", "quantity", "unit_price"], rows)
        cell = self.do("""
import pandas as pd
df = pd.read_csv("/mnt/data/sales.csv")
df["revenue"] = df["quantity"] * df["unit_price"]
top5 = df.groupby("city", as_index=False)["revenue"].sum().nlargest(5, "revenue")
print(top5.to_json(orient="records"))
top5
""", path)
        revenue = defaultdict(float)
        for _, city, quantity, price in rows:
            revenue[city] += quantity * price
        best = sorted(revenue, key=revenue.get, reverse=True)[:5]
        found = last_json(cell)
        self.assertEqual([row["city"] for row in found], best)
        for row in found:
            self.assertAlmostEqual(row["revenue"], revenue[row["city"]], 4)
        table = cell["outputs"][-1]
        self.assertEqual(table["type"], "result")
        for city in best:
            self.assertIn(f"<td>{city}</td>", table["data"]["text/html"])
            self.assertIn(city, table["data"]["text/plain"])

    def test_quarterly_trends_of_a_workbook_with_several_sheets(self):
        rng = random.Random(4)
        book, sums = openpyxl.Workbook(), defaultdict(float)
        book.remove(book.active)
        for year in (2022, 2023, 2024):
            sheet = book.create_sheet(str(year))
            sheet.append(["Date", "Product", "Revenue"])
            for n in range(200):
                day = datetime.datetime(year, 1, 1) + datetime.timedelta(rng.randrange(365))
                amount = round(rng.uniform(100, 1000) * (1 + (year - 2022) / 5), 2)
                sheet.append([day, rng.choice("ABC"), amount])
                sums[f"{year}Q{(day.month + 2) // 3}"] += amount
        book.save(self.path("revenue.xlsx"))
        cell = self.do("""
import pandas as pd, json
sheets = pd.read_excel("revenue.xlsx", sheet_name=None)
print(list(sheets))
df = pd.concat(sheets.values(), ignore_index=True)
df["Quarter"] = df["Date"].dt.to_period("Q")
quarterly = df.groupby("Quarter")["Revenue"].sum()
report = pd.DataFrame({"Revenue": quarterly, "Change %": quarterly.pct_change() * 100})
report.index = report.index.astype(str)
with pd.ExcelWriter("report.xlsx", engine="xlsxwriter") as writer:
    report.to_excel(writer, sheet_name="Quarterly")
    df.pivot_table(index="Product", columns="Quarter", values="Revenue", aggfunc="sum").to_excel(writer, sheet_name="Products")
    chart = writer.book.add_chart({"type": "line"})
    chart.add_series({"values": "=Quarterly!$B$2:$B$13"})
    writer.sheets["Quarterly"].insert_chart("E2", chart)
quarterly.plot(kind="bar", title="Revenue by quarter")
""", self.path("revenue.xlsx"))
        self.assertIn("['2022', '2023', '2024']", cli.text(cell))
        report = openpyxl.load_workbook(self.out("report.xlsx"))
        self.assertEqual(report.sheetnames, ["Quarterly", "Products"])
        rows = list(report["Quarterly"].iter_rows(min_row=2, values_only=True))
        self.assertEqual([row[0] for row in rows], sorted(sums))
        for before, row in zip([None, *rows], rows):
            self.assertAlmostEqual(row[1], sums[row[0]], 4)
            if before:
                self.assertAlmostEqual(row[2], (sums[row[0]] / sums[before[0]] - 1) * 100, 4)
        self.assertEqual(len(report["Quarterly"]._charts), 1)
        self.assertEqual(len(shown(cell)), 1)

    def test_standard_deviation_of_a_column(self):
        rng = random.Random(5)
        values = [round(rng.lognormvariate(3, 0.5), 3) for _ in range(500)]
        with cli.Repl("--server", self.server.link) as repl:
            lines = "".join(f"{n},{v}\n" for n, v in enumerate(values))
            self.assertEqual(repl.cell("%%writefile prices.csv\nitem,price\n" + lines)["status"], "ok")
            self.assertEqual(repl.cell("import pandas as pd\ndf = pd.read_csv('prices.csv')")["status"], "ok")
            answer = repl.cell("df['price'].std()")
            self.tell(answer)
            self.assertAlmostEqual(float(cli.result(answer)), statistics.stdev(values), 9)
            self.assertAlmostEqual(float(cli.result(repl.cell("import numpy as np; np.std(df['price'])"))),
                                   statistics.pstdev(values), 9)

    def test_merged_and_reshaped(self):
        rng = random.Random(6)
        customers = [(n, rng.choice(["AT", "DE", "CH"])) for n in range(1, 41)]
        orders = [(rng.randint(1, 50), rng.choice(["2024-01", "2024-02", "2024-03"]), rng.randint(5, 500))
                  for _ in range(400)]
        paths = [write_csv(self, "customers.csv", ["customer_id", "country"], customers),
                 write_csv(self, "orders.csv", ["customer_id", "month", "amount"], orders)]
        self.do("""
import pandas as pd
orders = pd.read_csv("orders.csv")
customers = pd.read_csv("customers.csv")
merged = orders.merge(customers, on="customer_id", how="left", validate="many_to_one")
merged["country"] = merged["country"].fillna("unknown")
wide = merged.pivot_table(index="country", columns="month", values="amount", aggfunc="sum", fill_value=0)
wide.to_csv("wide.csv")
long = wide.reset_index().melt(id_vars="country", value_name="amount").sort_values(["country", "month"])
long.to_json("long.json", orient="records")
wide
""", *paths)
        country, sums = dict(customers), defaultdict(int)
        for customer, month, amount in orders:
            sums[country.get(customer, "unknown"), month] += amount
        with open(self.out("wide.csv")) as file:
            wide = {(row["country"], month): int(row[month]) for row in csv.DictReader(file)
                    for month in row if month != "country"}
        self.assertEqual(wide, dict(sums))
        with open(self.out("long.json")) as file:
            long = [(row["country"], row["month"], row["amount"]) for row in tasks.json.load(file)]
        self.assertEqual(long, sorted((*key, amount) for key, amount in sums.items()))

    def test_a_sqlite_file_queried(self):
        rng = random.Random(7)
        people = [(n, f"Person {n}", rng.choice(["Sales", "Research", "Support"])) for n in range(60)]
        hours = [(rng.randrange(60), rng.randint(1, 9)) for _ in range(900)]
        with sqlite3.connect(self.path("work.db")) as db:
            db.execute("create table people (id integer primary key, name text, team text)")
            db.execute("create table hours (person integer references people, spent integer)")
            db.executemany("insert into people values (?, ?, ?)", people)
            db.executemany("insert into hours values (?, ?)", hours)
        db.close()
        with open(self.path("work.db"), "rb") as file:
            data = file.read()
        # As a developer's agent does it: a session over HTTP.
        session = self.server.call("POST", "/v1/sessions", {})["id"]
        tasks.upload(self.server, session, "work.db", data)
        cell = self.server.call("POST", f"/v1/sessions/{session}/cells", {"code": """
import sqlite3, pandas as pd
conn = sqlite3.connect("/mnt/data/work.db")
print(pd.read_sql("select name from sqlite_master where type='table' order by 1", conn)["name"].tolist())
totals = pd.read_sql_query('''
    select p.team, count(distinct p.id) as people, sum(h.spent) as hours
    from hours h join people p on p.id = h.person
    group by p.team order by hours desc''', conn)
totals.to_csv("totals.csv", index=False)
totals
"""})
        self.tell(cell)
        self.assertEqual(cell["status"], "ok", cell)
        self.assertIn("['hours', 'people']", cli.text(cell))
        team, spent, busy = {n: t for n, _, t in people}, defaultdict(int), defaultdict(set)
        for person, h in hours:
            spent[team[person]] += h
            busy[team[person]].add(person)
        rows = tasks.download(self.server, session, "totals.csv").decode().splitlines()
        self.assertEqual(rows[1:], [f"{t},{len(busy[t])},{spent[t]}" for t in sorted(spent, key=spent.get, reverse=True)])
        self.server.call("DELETE", f"/v1/sessions/{session}")
