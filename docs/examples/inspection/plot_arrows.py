"""
Held-out objects show how far two views agree
=============================================

An arrow goes from an object's place in one view to its place in the other: where the views agree,
it is short. On the rows of the fit arrows are always short, so draw those of new rows as well.
"""

# %%
# The left and right halves of 60 digits, and of 60 others. With 64 pixels and so few objects, CCA
# finds components on which the halves of the first ones agree almost perfectly.

import matplotlib.pyplot as plt
import numpy as np

from mvcca import CCA, MVCCA
from mvcca.datasets import load_digits_views
from mvcca.plotting import ArrowsDisplay

data = load_digits_views()
train, test = data.views[:60], data.views[60:120]
model = CCA(2, reg=0.01).fit(train)
figure, axes = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained")
for ax, rows, of_rows in zip(axes, (train, test), ("training", "held-out"), strict=True):
    display = ArrowsDisplay.from_estimator(model, rows, ax=ax)
    ax.set_title(f"{of_rows.capitalize()} digits")
    left, right = (display.points[name] for name in ("left", "right"))
    length = np.linalg.norm(left - right, axis=1).mean()
    print(f"{of_rows} digits: arrows have a mean length of {length:.2f}")
plt.show()

# %%
# With 1,500 digits and a larger ridge, arrows of new digits are shorter. Colours are the digits.

model = CCA(2, reg=0.1).fit(data.views[120:1620])
ArrowsDisplay.from_estimator(model, test, groups=data.labels[60:120])
plt.show()

# %%
# With more than two views, arrows go from the mean of an object's places to each of them.

quadrants = load_digits_views("quadrants")
four = MVCCA(2, reg=0.1).fit(quadrants.views[120:1620])
ArrowsDisplay.from_estimator(four, quadrants.views[60:100], groups=quadrants.labels[60:100])
plt.show()
