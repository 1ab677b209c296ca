"""
Every aspect of a model has a plot
==================================

The displays of :mod:`mvcca.plotting` follow scikit-learn: ``from_estimator`` computes what is
shown, ``plot`` draws it, and keywords of matplotlib change how. What was drawn is kept, so that it
can be changed afterwards, and ``frame`` lists it in a DataFrame.
"""

# %%
# 178 wines of three growers, with two views: what they taste of (alcohol, acids, minerals), and
# what gives them colour (phenols, hue), standardized. Columns of DataFrames name the variables. A
# third of the wines are held out.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split

from mvcca import CCA, MVCCA, Views, evaluate_retrieval
from mvcca.datasets import load_digits_views
from mvcca.inspection import component_correlations
from mvcca.plotting import (
    BiplotDisplay,
    CorrelationDisplay,
    EmbeddingDisplay,
    LoadingsDisplay,
    RetrievedDisplay,
)

wine = load_wine(as_frame=True)
columns = ["alcohol", "malic_acid", "ash", "alcalinity_of_ash", "magnesium", "proline"]
table = (wine.data - wine.data.mean()) / wine.data.std()
frames = Views({"taste": table[columns], "colour": table.drop(columns=columns)})
growers = np.array(["first grower", "second grower", "third grower"])[wine.target]
train, test, growers_train, growers_test = train_test_split(
    frames, growers, test_size=1 / 3, random_state=0
)
model = CCA(4, reg=0.01).fit(train)

# %%
# The variates of one component in both views, a point per wine. The correlation comes from the
# difference between growers, not from outliers.

scores = model.transform(test)
figure, ax = plt.subplots(layout="constrained")
for grower in np.unique(growers_test):
    own = growers_test == grower
    ax.scatter(scores["taste"][own, 0], scores["colour"][own, 0], label=grower)
ax.set(xlabel="Component 1 of taste", ylabel="Component 1 of colour")
ax.legend(frameon=False)
plt.show()

# %%
# Loadings are the correlations of the variables with a component. The heat map shows all of them.

LoadingsDisplay.from_estimator(model, train, kind="heatmap", n_top=13)
plt.show()

# %%
# In the correlation circle, a variable near the outer circle is explained by two components.

LoadingsDisplay.from_estimator(model, train, kind="circle", n_top=13, s=40)
plt.show()

# %%
# The biplot shows wines and variables together. Labels are moved apart when the figure is drawn.

BiplotDisplay.from_estimator(model, train, groups=growers_train, n_top=13)
plt.show()

# %%
# Keywords go to matplotlib, and artists are kept. Here the line of the held-out rows is changed
# after it was drawn.

display = CorrelationDisplay.from_estimator(model, train, X_test=test, linewidth=2)
display.line_["held-out"].set(marker="D", linestyle="--")
display.ax_.set_title("Four components of wine")
plt.show()

# %%
# A mapping of estimators compares them on the same rows.

ridges = {f"ridge {reg}": CCA(6, reg=reg).fit(train) for reg in (0.0, 0.1, 10.0)}
CorrelationDisplay.from_estimator(ridges, test)
plt.show()

# %%
# With more than two views, a matrix shows which pairs agree. The quadrants of a digit that lie
# above each other correlate most.

quadrants = load_digits_views("quadrants")
four = MVCCA(8, reg=0.1).fit(quadrants.views[:1200])
figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), layout="compressed")
correlations = pd.Series(
    {pair: r.mean() for pair, r in component_correlations(four, quadrants.views[1200:]).items()}
)
table = evaluate_retrieval(quadrants.views[1200:], estimator=four, measures="r@10")
panels = {"Mean correlation": correlations.unstack(), "R@10": table.to_frame()["r@10"].unstack()}
for ax, (title, values) in zip(axes, panels.items(), strict=True):
    figure.colorbar(ax.imshow(values))
    ax.set_xticks(range(len(values.columns)), values.columns, rotation=30)
    ax.set_yticks(range(len(values)), values.index)
    ax.set_title(title)
plt.show()

# %%
# The shared space of all views, with a marker per view and a colour per digit.

some = quadrants.views[1200:1400].select(["top_left", "bottom_left"])
EmbeddingDisplay.from_estimator(four, some, groups=quadrants.labels[1200:1400], lines=True)
plt.show()

# %%
# Retrieved items are shown as images, or as text. ``show`` says what a row looks like: here a shape
# for the query's pixels, and a text for each item.

texts = [f"image {i} of a {digit}" for i, digit in enumerate(quadrants.labels[1200:])]
RetrievedDisplay.from_estimator(
    four,
    quadrants.views[1200:],
    quadrants.labels[1200:],
    query="top_left",
    target="bottom_left",
    queries=4,
    k=5,
    show={"top_left": (4, 4), "bottom_left": texts},
)
plt.show()
