"""
Choose settings by retrieval, not by correlation
================================================

CCA has two parameters that matter: the ridge and the number of components. The mean correlation of
held-out rows is a poor guide to both, since it is always larger with fewer components. A retrieval
measure compares all combinations.
"""

# %%
# ``retrieval_scorer`` makes a scorer for searches. Folds hold out objects with both views. A query
# asks for the other half of its image. ``FoldSearchCV`` finds what scikit-learn's ``GridSearchCV``
# finds, from one pass over the rows.

import matplotlib.pyplot as plt
from sklearn.model_selection import ValidationCurveDisplay, train_test_split

from mvcca import CCA, FoldSearchCV, evaluate_retrieval, retrieval_scorer
from mvcca.datasets import load_digits_views

views = load_digits_views("halves").views
train, test = train_test_split(views, test_size=1 / 3, random_state=0)
grid = {"reg": [0.001, 0.01, 0.1, 1.0, 10.0], "n_components": [2, 4, 8, 16, 24]}
search = FoldSearchCV(
    CCA(),
    grid,
    scoring={"r@10": retrieval_scorer("r@10"), "correlation": lambda model, X: model.score(X)},
    refit="r@10",
    cv=3,
)
search.fit(train)

# %%
# The dot marks the best combination. By the mean correlation, it has the fewest components; by
# recall, many.

figure, axes = plt.subplots(1, 2, figsize=(11, 3.8), layout="constrained")
for ax, measure in zip(axes, ("correlation", "r@10"), strict=True):
    scores = search.cv_results_[f"mean_test_{measure}"].reshape(len(grid["n_components"]), -1)
    figure.colorbar(ax.imshow(scores), label=measure)
    row, column = divmod(scores.argmax(), len(grid["reg"]))
    ax.plot(column, row, "o", color="black")
    ax.set_xticks(range(len(grid["reg"])), grid["reg"])
    ax.set_yticks(range(len(grid["n_components"])), grid["n_components"])
    ax.set(title=measure, xlabel="reg", ylabel="n_components")
plt.show()

# %%
# One parameter at a time, at the best value of the other, with scikit-learn's display. Recall is
# lower on both sides of the chosen ridge, so the grid was wide enough.

ValidationCurveDisplay.from_estimator(
    search.best_estimator_,
    train,
    None,
    param_name="reg",
    param_range=grid["reg"],
    scoring=retrieval_scorer("r@10"),
    score_name="R@10",
    score_type="test",
    cv=3,
)
plt.show()

# %%
# What does it matter? The best combination by either measure is fitted again to all training rows.

for measure in ("correlation", "r@10"):
    best = search.cv_results_[f"rank_test_{measure}"].argmin()
    parameters = search.cv_results_["params"][best]
    model = CCA(**parameters).fit(train)
    recall = evaluate_retrieval(test, estimator=model, measures="r@10").mean()["r@10"]
    print(f"best {measure}: {parameters}, R@10 on test rows {recall:.3f}")

# %%
# Choosing a number of components matters less with the default ranking, which weights them by their
# correlations, than with the cosine of unweighted ones: see
# :doc:`/gallery/retrieval/plot_likelihood`.
