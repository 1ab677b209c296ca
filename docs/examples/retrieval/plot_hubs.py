"""
Some items are found too often, and a correction stops them
===========================================================

In spaces of many dimensions a few items, the hubs, are near to many queries whatever these show.
They take the place of the right items. A correction compares every item with a bank of other
queries and lowers the scores of items that are near to many of them.
"""

# %%
# Two views of 60 shared factors, most of them weak, with noise. The map from images to texts is
# learned by ridge regression from 1,500 pairs.

import matplotlib.pyplot as plt
import numpy as np

from mvcca import AffineMap, Views, evaluate_retrieval
from mvcca.measures import hubness
from mvcca.retrieval import top_k

rng = np.random.default_rng(0)
factors = rng.normal(size=(2500, 60)) * np.arange(1, 61) ** -0.5


def view(width):
    rows = factors @ rng.normal(size=(60, width)) / 3
    return rows + 0.6 * rng.normal(size=rows.shape)


views = Views({"image": view(100), "text": view(80)})
train, test = views[:1500], views[1500:]
model = AffineMap(reg=0.05).fit(train)

# %%
# Without hubs, each text would be among the first ten of about ten images. The figure shows how
# often each one is. Their skewness is the measure ``hubness@10``.

queries = model.predict({"image": test["image"]}, target="text")
bank = model.predict({"image": train["image"]}, target="text"), train["text"]
figure, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
for name, options in {"cosine": {}, "CSLS": {"hubness": "csls", "bank": bank}}.items():
    _, found = top_k(queries, test["text"], k=10, **options)
    times = np.bincount(found.ravel(), minlength=len(test))
    print(
        f"{name:6}: one text is found {times.max()} times, {np.mean(times == 0):.1%} never; "
        f"hubness {hubness(times):.2f}"
    )
    ax.hist(times, bins=np.arange(0, 144, 4), histtype="step", linewidth=1.8, label=name)
ax.set(xlabel="Queries that have a text among their first ten", ylabel="Texts", yscale="log")
ax.legend()
plt.show()

# %%
# The same option corrects an evaluation, a scorer, an index and ``mvcca search``. The bank holds
# training rows, never the queries that are evaluated: the ranking of one query must not depend on
# the others.

for correction in (None, "csls"):
    options = {} if correction is None else {"hubness": correction, "bank": train}
    table = evaluate_retrieval(
        test, estimator=model, measures=["r@1", "r@10", "hubness@10"], **options
    )
    values = ", ".join(f"{name} {value:.3f}" for name, value in table.mean().items())
    print(f"{correction or 'none':4} {values}")

# %%
# A correction helps where hubs hurt. It is not the default, because it needs a bank, and because
# measures by labels may lose: see :ref:`the user guide <hubs>` for figures on real data.
