# tries: scipy, where the environment has it
import importlib.util
import numpy as np
if importlib.util.find_spec("scipy"):
    from scipy import integrate, optimize, stats
    assert abs(integrate.quad(np.sin, 0, np.pi)[0] - 2) < 1e-9
    assert abs(optimize.minimize(lambda v: (v[0] - 3) ** 2, [0]).x[0] - 3) < 1e-4
    assert stats.norm.cdf(0) == 0.5
print(np.fft.fft(np.ones(8))[0].real)
print("OK")
