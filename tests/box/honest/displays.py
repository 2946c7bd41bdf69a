# tries: rich results: HTML tables, Markdown, JSON, images, several displays in order
# outside: none
# %% a
from IPython.display import HTML, JSON, Markdown, display
display(HTML("<b>x</b>"))
print("between")
display(Markdown("# y"))
JSON({"a": 1})
# %% a
import pandas as pd
assert "<table" in pd.DataFrame({"a": [1]})._repr_html_()
print("OK")
