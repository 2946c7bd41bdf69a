# tries: pandas on CSV files: write, read, group, join, describe
# %% a
import numpy as np
import pandas as pd
rng = np.random.default_rng(1)
sales = pd.DataFrame({"city": rng.choice(["Graz", "Wien", "Linz"], 5000), "amount": rng.integers(1, 100, 5000),
                      "day": pd.date_range("2024-01-01", periods=5000, freq="h")})
sales.to_csv("sales.csv", index=False)
# %% a
back = pd.read_csv("sales.csv", parse_dates=["day"])
assert back.equals(sales), back.dtypes
totals = back.groupby("city").amount.sum().sort_values(ascending=False)
assert totals.sum() == sales.amount.sum()
monthly = back.set_index("day").resample("M").amount.mean()
assert len(monthly) == 7, len(monthly)
joined = back.merge(pd.DataFrame({"city": ["Graz", "Wien"], "state": ["Styria", "Vienna"]}), on="city")
assert set(joined.state) == {"Styria", "Vienna"}
pivot = back.pivot_table(index=back.day.dt.month, columns="city", values="amount", aggfunc="sum")
# %% a
totals.to_frame()
# %% a
print(back.describe().to_string())
print("OK")
