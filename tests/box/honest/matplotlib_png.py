# tries: matplotlib: a picture in a file, and a figure that is shown
# check: png_file png_display
# outside: none
# %% a
import matplotlib.pyplot as plt
import numpy as np
x = np.linspace(0, 10, 200)
figure, axes = plt.subplots()
axes.plot(x, np.sin(x), label="Sinus · 正弦")
axes.set_title("Übersicht")
axes.legend()
figure.savefig("plot.png")
plt.close(figure)
with open("plot.png", "rb") as f:
    assert f.read(8) == b"\x89PNG\r\n\x1a\n"
# %% a
plt.hist(np.random.default_rng(0).normal(size=1000), bins=30)
plt.show()
# %% a
plt.plot([1, 2, 3])
print("OK")
