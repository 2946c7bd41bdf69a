/* usual: the modules that a server imports beforehand, as far as they are installed: what a session of an analyst
 * uses. What they cost and save is in docs/decisions/2026-11-16-what-is-imported-beforehand.md. */
#pragma once

#define USUAL_MODULES                                                                              \
    "numpy pandas matplotlib.pyplot seaborn scipy.stats scipy.optimize scipy.integrate "           \
    "sklearn.linear_model sklearn.ensemble sklearn.model_selection sklearn.preprocessing "         \
    "statsmodels.api sympy networkx openpyxl lxml.etree bs4 requests yaml PIL.Image sqlite3"
