"""
A network separates texture from size and shape
===============================================

Variables of different views are joined if their association reaches a cut-off. Parts of the
network that are not joined are different themes; hubs go with many variables of other views.
"""

# %%
# Three views of the nuclei of 569 tumours: ten measurements as means, as standard errors, and as
# means of the three worst nuclei.

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer

from mvcca import MVCCA
from mvcca.plotting import AssociationsDisplay

cancer = load_breast_cancer(as_frame=True).data
table = (cancer - cancer.mean()) / cancer.std()
views = {}
for view, word in (("mean", "mean "), ("error", " error"), ("worst", "worst ")):
    columns = [name for name in table.columns if word in name]
    views[view] = table[columns].rename(columns=lambda name, word=word: name.replace(word, ""))
model = MVCCA(3, reg=0.1).fit(views)

# %%
# At 0.6, size (radius, perimeter, area) and shape (concavity, compactness) form one part with many
# lines, from size at one end to fractal dimension at the other. Texture is joined to nothing else.

AssociationsDisplay.from_estimator(model, views, cutoff=0.6)
plt.show()

# %%
# At 0.8, size and shape hang together by the concave points only: without these, size would be one
# part, concavity and compactness another.

AssociationsDisplay.from_estimator(model, views, cutoff=0.8)
plt.show()

# %%
# Are these associations more than chance? On tumours that were left out of the fit, a cut-off of
# 0.6 finds almost the same pairs.

held_out = {name: frame[285:] for name, frame in views.items()}
half = MVCCA(3, reg=0.1).fit({name: frame[:285] for name, frame in views.items()})
pairs = [
    {tuple(pair) for pair in frame.drop(columns="value").to_numpy()}
    for frame in (
        AssociationsDisplay.from_estimator(half, rows, cutoff=0.6).frame()
        for rows in ({name: frame[:285] for name, frame in views.items()}, held_out)
    )
]
plt.close("all")
print(f"{len(pairs[0])} pairs in the fit, {len(pairs[0] & pairs[1])} of them on held-out rows")
