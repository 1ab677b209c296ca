"""
A circos plot shows which parts of three views go together
==========================================================

Variables stand on a ring, in sectors for their views, and chords join those that are associated.
It takes any number of views.
"""

# %%
# Ten measurements of cell nuclei in 569 tumours, each as the mean over the nuclei of a tumour, as
# its standard error, and as the mean of the three worst nuclei: three views of ten variables.

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer

from mvcca import MVCCA
from mvcca.inspection import associations
from mvcca.plotting import AssociationsDisplay

cancer = load_breast_cancer(as_frame=True).data
table = (cancer - cancer.mean()) / cancer.std()
views = {}
for view, word in (("mean", "mean "), ("error", " error"), ("worst", "worst ")):
    columns = [name for name in table.columns if word in name]
    views[view] = table[columns].rename(columns=lambda name, word=word: name.replace(word, ""))
model = MVCCA(3, reg=0.1).fit(views)

# %%
# The association of two variables adds up the products of their correlations with each component
# (see :func:`mvcca.inspection.associations`). A cut-off leaves the strong ones. Size (radius,
# perimeter, area) goes with size in all three views, and texture with texture.

AssociationsDisplay.from_estimator(model, views, kind="circos", cutoff=0.8)
plt.show()

# %%
# Without a cut-off, the 50 strongest pairs are drawn. ``frame`` lists them.

display = AssociationsDisplay.from_estimator(model, views, kind="circos")
plt.show()
print(display.frame().head())

# %%
# The numbers themselves, for all pairs of variables of two views:

found = associations(model, views)["mean", "error"]
print(found.shape, "associations from", found.min().round(2), "to", found.max().round(2))
