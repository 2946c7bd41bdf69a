# tries: libraries that draw and count show what they have, and say nothing that is no use
# outside: none
# check: rich_displays
# within: 90
# %% a
import contextlib, io
said = io.StringIO()
with contextlib.redirect_stderr(said):
    import altair as alt, plotly.express as px, pandas as pd, psutil, sympy
    from PIL import Image
    from tqdm.notebook import tqdm
assert said.getvalue() == "", said.getvalue()
# %% a
table = pd.DataFrame({"city": ["Lyon", "Nice"], "sales": [3, 4.5]})
px.bar(table, x="city", y="sales", title="Sales").show()
display(alt.Chart(table).mark_bar().encode(x="city", y="sales"))
Image.new("RGB", (30, 20)).show()
display(sympy.sqrt(2), table)
table.plot.bar(x="city")
for i in tqdm(range(100_000)): pass
print("OK")
