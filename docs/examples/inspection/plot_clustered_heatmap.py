"""
Size and shape are two blocks of a clustered heat map
=====================================================

The heat map shows the association of every variable of one view with every variable of another.
Two trees put similar variables side by side, so that groups stand out as blocks.
"""

# %%
# Ten measurements of the nuclei of 569 tumours: the means, and the standard errors.

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer

from mvcca import CCA
from mvcca.plotting import AssociationsDisplay

cancer = load_breast_cancer(as_frame=True).data
table = (cancer - cancer.mean()) / cancer.std()
views = {}
for view, word in (("mean", "mean "), ("error", " error")):
    columns = [name for name in table.columns if word in name]
    views[view] = table[columns].rename(columns=lambda name, word=word: name.replace(word, ""))
model = CCA(3, reg=0.1).fit(views)

# %%
# The three measures of size go with errors of size, and the measures of shape with errors of shape.
# Tumours with large nuclei have nuclei of more different sizes.

AssociationsDisplay.from_estimator(model, views, kind="heatmap")
plt.show()

# %%
# Of wide views, only the variables with the largest associations are drawn, ``n_top`` of each.
# ``frame`` lists what is drawn.

table = AssociationsDisplay.from_estimator(model, views, kind="heatmap", n_top=5).frame()
plt.show()
print(table.pivot(index="first", columns="second", values="value").round(2))
