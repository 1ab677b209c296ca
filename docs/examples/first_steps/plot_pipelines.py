"""
A pipeline can split one matrix into views and join them again
==============================================================

Steps of a scikit-learn pipeline split a matrix into views, transform each view, find the shared
space, and join the scores into one matrix for what follows.
"""

# %%
# The 64 pixels of a digit are one row. :class:`~mvcca.SplitViews` makes two views of the columns,
# :class:`~mvcca.PerView` scales each of them, and :class:`~mvcca.JoinViews` puts the scores of both
# side by side.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mvcca
from mvcca import CCA, JoinViews, PerView, SplitViews

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
pipeline = make_pipeline(
    SplitViews({"top": slice(0, 32), "bottom": slice(32, 64)}),
    PerView(StandardScaler()),
    CCA(reg=0.1),
    JoinViews(),
    LogisticRegression(max_iter=1000),
)

# %%
# A search over the number of components fits the whole pipeline in every fold, so that test folds
# stay unseen by all of its steps.

search = GridSearchCV(pipeline, {"cca__n_components": [2, 5, 10, 20]}, cv=3)
search.fit(X_train, y_train)
print(f"{search.best_params_}, accuracy on test rows {search.score(X_test, y_test):.3f}")
plt.errorbar(
    search.cv_results_["param_cca__n_components"].astype(int),
    search.cv_results_["mean_test_score"],
    search.cv_results_["std_test_score"],
    marker="o",
)
plt.xlabel("number of components")
plt.ylabel("accuracy, three folds")
plt.show()

# %%
# ``save`` stores the search, or any model, as arrays and plain parameters, without pickle.

with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "digits.mvcca"
    mvcca.save(search, file)
    print(
        "saved and loaded:", mvcca.load(file).score(X_test, y_test) == search.score(X_test, y_test)
    )
