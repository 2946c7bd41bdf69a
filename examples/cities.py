"""Twelve invented cities: a table by region and a chart of their growth.

    retort run -f examples/cities.csv -o out examples/cities.py
"""
import matplotlib.pyplot as plt
import pandas as pd

cities = pd.read_csv("cities.csv")
first, last = cities["year"].min(), cities["year"].max()

# One row for each year, one column for each region.
people = cities.pivot_table(index="year", columns="region", values="population_k", aggfunc="sum")

table = cities[cities["year"] == last].groupby("region").agg(
    cities=("city", "count"),
    people_k=("population_k", "sum"),
    rain_mm=("rain_mm", "mean"),
    trees_k=("trees_k", "sum"),
)
table["growth_%"] = (people.loc[last] / people.loc[first] - 1) * 100
table = table.sort_values("people_k", ascending=False).round(1)

print(f"{cities['city'].nunique()} cities in {len(table)} regions, {first} to {last}\n")
print(table.to_string())

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
for region in table.index:
    axes.plot(people.index, people[region] / people.loc[first, region] * 100, marker="o",
              label=region)
axes.set_xticks(people.index)
axes.set_title("Population by region")
axes.set_ylabel(f"{first} = 100")
axes.grid(alpha=0.3)
axes.legend(frameon=False)
figure.savefig("cities.png", dpi=120)
plt.close(figure)
print("\nThe chart is in cities.png")
