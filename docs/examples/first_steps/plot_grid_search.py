"""
Grid search tunes a pipeline of several views
=============================================

``Views`` are indexed by row like a matrix, so that pipelines, cross-validation and grid search
accept them. Retrieval measures are available as scorers.
"""

# %%
# Every quadrant of a digit is a view. The pipeline scales each view and reduces its dimension, then
# maps all views into one space. ``PerView`` clones its transformer for each view.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mvcca import MVCCA, PerView, evaluate_retrieval, retrieval_scorer
from mvcca.datasets import load_digits_views

views = load_digits_views("quadrants").views
views_train, views_test = train_test_split(views, test_size=1 / 3, random_state=0)
pipeline = make_pipeline(PerView(make_pipeline(StandardScaler(), PCA())), MVCCA(n_components=8))

# %%
# The goal is that a quadrant finds another quadrant of its image among the first ten results:
# ``r@10``, averaged over all twelve directions. There are three folds and twelve candidates.

search = GridSearchCV(
    pipeline,
    {
        "mvcca__reg": np.logspace(-3, 1, 4),
        "perview__transformer__pca__n_components": [8, 12, 16],
    },
    scoring=retrieval_scorer("r@10"),
    cv=3,
)
search.fit(views_train)
print(search.best_params_)

# %%
# The figure shows the effect of both parameters. Here, reducing the dimension of the views does not
# help.

results = search.cv_results_
figure, ax = plt.subplots(layout="constrained")
for n in (8, 12, 16):
    chosen = results["param_perview__transformer__pca__n_components"] == n
    ax.errorbar(
        results["param_mvcca__reg"][chosen].astype(float),
        results["mean_test_score"][chosen],
        results["std_test_score"][chosen],
        marker="o",
        capsize=3,
        label=f"{n} principal components per view",
    )
ax.set(xscale="log", xlabel="Ridge, in mean variances", ylabel="R@10 in cross-validation")
ax.legend(frameon=False)
plt.show()

# %%
# ``GridSearchCV`` has refitted the best pipeline on all training rows. On the test rows it reaches:

best = search.best_estimator_
print(evaluate_retrieval(views_test, estimator=best, measures=["r@1", "r@10", "mr"]))
