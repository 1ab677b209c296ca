"""Sparse CCA and sparse discriminants beside mixOmics, PMA and cca-zoo.

    python -m benchmarks.peers.selection [--parts classes counts planted real sizes]
        [--cca-zoo FOLDER]

"classes": mean error over classes of breast cancer (`breast_tcga.npz`), on folds and on the test
rows, which lack the proteins; in brackets, the figures of the specification's prototype. "counts":
the same of five sets of classes for numbers of features, given and chosen by folds. "planted"
and "real": F1 of selected features, held-out correlation and CPU time, first of one fit with given
numbers of features, then with a search by 5 folds: cca-zoo's `GridSearchCV` of one setting for both
views beside `SparseCCA`, which then goes on view by view. "sizes": the search at 5,000 x (500 +
500) and 200 x (20,000 + 1,000); those of cca-zoo are three fits, times 30. cca-zoo is read from a
folder (``pip install --no-deps --target FOLDER cca-zoo``); without it, its lines are left out. R
packages are not run: their figures are those of the specification.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from time import process_time


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", help="all by default")
    parser.add_argument("--sets", type=int, default=3, help="planted sets of each kind")
    parser.add_argument("--repeats", type=int, default=4, help="of the folds of real data")
    parser.add_argument("--cca-zoo", help="folder that cca-zoo is installed in")
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds

import numpy as np
from sklearn.cross_decomposition import PLSCanonical
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.neighbors import NearestCentroid
from threadpoolctl import threadpool_limits

from benchmarks._arguments import names_in
from benchmarks._measure import machine, peak_memory
from benchmarks.defaults.sparse import f1, planted
from benchmarks.real import data_home
from mvcca import SparseCCA, SparseDiscriminant, Views
from mvcca.problem.ascent import counts_to_try

PUBLISHED = {"mrna": (8, 25), "mirna": (14, 5), "protein": (10, 5)}  # keepX of mixOmics' example


# ---- classes -------------------------------------------------------------------------------------


def nearest(scores, y, new):
    """Classes of the nearest centroids, and of "Mahalanobis" as mixOmics computes it."""
    classes = np.unique(y)
    means = np.array([scores[y == c].mean(axis=0) for c in classes])
    deviations = scores - means[np.searchsorted(classes, y)]
    inverse = np.linalg.inv(deviations.T @ deviations / (len(y) - len(classes)))
    D = new[:, None] - means
    squares = (D @ inverse @ D.transpose(0, 2, 1)) ** 2  # a class x class matrix for each row
    own = classes[squares.sum(axis=2).argmin(axis=1)]
    return NearestCentroid().fit(scores, y).predict(new), own


def votes(model, train, y, new, kind):
    """Votes of the views, weighted by the correlations of their scores with the classes."""
    scores, of_new, total = model.transform(train), model.transform(new), 0
    for name, Z in of_new.items():
        found = nearest(scores[name], y, Z)[kind]
        total += model.class_correlations_[name].mean() * (found[:, None] == model.classes_)
    return model.classes_[total.argmax(axis=1)]


def errors(model, train, y, new, y_new):
    """Mean error over classes by votes of centroids, of "Mahalanobis", and by the sum of LDAs."""
    found = [votes(model, train, y, new, kind) for kind in (0, 1)] + [model.predict(new)]
    return np.array([1 - balanced_accuracy_score(y_new, own) for own in found])


def classes(options):
    print("\n### Classes: mean error over classes of breast cancer\n")
    print(f"All views / protein withheld ({options.repeats} x 5 folds of 150 rows) / 70 test rows.")
    print("In brackets: the prototype. mixOmics: test .0683 by votes, .0254 by its Mahalanobis.\n")
    data = np.load(data_home() / "breast_tcga.npz")
    views = Views({name: data[f"{name}_train"] for name in PUBLISHED})
    test = Views({name: data[f"{name}_test"] for name in PUBLISHED if name != "protein"})
    y, y_test = data["y_train"], data["y_test"]
    models = {
        "as mixOmics": SparseDiscriminant(n_features=PUBLISHED, shrink=True, start="own"),
        "published numbers": SparseDiscriminant(n_features=PUBLISHED),
        "10 each": SparseDiscriminant(n_features=10),
        "25 each": SparseDiscriminant(n_features=25),
        "50 each": SparseDiscriminant(n_features=50),
        "all": SparseDiscriminant(n_features=None),
        "by folds": SparseDiscriminant(random_state=0),
    }
    expected = {
        "as mixOmics": (".060/.084/.068", ".032/.095/.044"),
        "10 each": (".065/.087/.044", ".039/.085/.035"),
        "25 each": (".059/.069/.025", ".030/.068/.025"),
        "50 each": (".041/.056/.025", ".027/.050/.025"),
        "all": (".044/.045/.048", ".031/.044/.048"),
    }
    print('| features | votes of centroids | votes of "Mahalanobis" | sum of LDAs | CPU s |')
    print("|---" * 5 + "|")
    for name, model in models.items():
        found = []
        for repeat in range(options.repeats):
            folds = StratifiedKFold(5, shuffle=True, random_state=repeat)
            for train, held_out in folds.split(y, y):
                rows, new = views[train], views[held_out]
                model.fit(rows, y[train])
                found.append(
                    [
                        errors(model, rows, y[train], own, y[held_out])
                        for own in (new, new.select(test.names))
                    ]
                )
        start = process_time()
        model.fit(views, y)
        seconds = process_time() - start
        of_folds = np.mean(found, axis=0)  # (2, 3)
        table = np.vstack([of_folds, errors(model, views, y, test, y_test)]).T
        cells = ["/".join(f"{e:.3f}".lstrip("0") for e in row) for row in table]
        cells[1] = f"{table[1, 2]:.4f}".lstrip("0") + " (test)"
        for place, known in zip((0, 2), expected.get(name, ("", "")), strict=True):
            cells[place] += f" [{known}]" if known else ""
        print(f"| {name} | " + " | ".join(cells) + f" | {seconds:.2f} |", flush=True)


def counts(options):
    print("\n### Classes: numbers of features, given and by folds\n")
    print("Mean error over classes with all views / with one view withheld, the mean over views;")
    print(f"{options.repeats} x 4 stratified folds. In brackets: mean of the chosen numbers.\n")
    given = (2, 5, 10, 20, 50, None)
    names = ["all" if count is None else str(count) for count in given]
    print("| data | rows | classes | " + " | ".join([*names, "by folds"]) + " |")
    print("|---" * (len(given) + 4) + "|")
    for name, (views, y) in labelled_sets().items():
        found: dict = {}
        folds = [
            own
            for repeat in range(options.repeats)
            for own in StratifiedKFold(4, shuffle=True, random_state=repeat).split(y, y)
        ]
        for train, held_out in folds:
            new = views[held_out]
            for count in (*given, "cv"):
                model = SparseDiscriminant(min(len(np.unique(y)) - 1, 2), n_features=count)
                model.set_params(random_state=0).fit(views[train], y[train])
                parts = [new] + [new.select(new.names[:i] + new.names[i + 1 :]) for i in range(2)]
                own = [1 - balanced_accuracy_score(y[held_out], model.predict(p)) for p in parts]
                chosen = getattr(model, "n_features_", 0)
                found.setdefault(count, []).append((own[0], np.mean(own[1:]), chosen))
        cells = []
        for count, own in found.items():
            error, without, chosen = np.mean(own, axis=0)
            cells.append(f"{error:.3f}/{without:.3f}".replace("0.", "."))
            cells[-1] += f" ({chosen:.0f})" if count == "cv" else ""
        print(
            f"| {name} | {len(y)} | {len(np.unique(y))} | " + " | ".join(cells) + " |", flush=True
        )


def labelled_sets():
    """Views with classes, by name of the data."""
    breast = np.load(data_home() / "breast_tcga.npz")
    mouse = np.load(data_home() / "nutrimouse.npz")
    liver = np.load(data_home() / "liver_toxicity.npz")
    genes = np.argsort(-liver["gene"].var(axis=0), kind="stable")[:400]
    of_mouse = Views({"gene": mouse["gene"], "lipid": mouse["lipid"]})
    of_liver = Views({"gene": liver["gene"][:, genes], "clinic": liver["clinic"]})
    return {
        "breast, mRNA and miRNA": (
            Views({name: breast[f"{name}_train"] for name in ("mrna", "mirna")}),
            breast["y_train"],
        ),
        "nutrimouse, diet": (of_mouse, mouse["diet"]),
        "nutrimouse, genotype": (of_mouse, mouse["genotype"]),
        "liver, dose": (of_liver, liver["treatment_dose_group"]),
        "liver, time": (of_liver, liver["treatment_time_group"]),
    }


# ---- correlation ---------------------------------------------------------------------------------


def standardized(train, *others):
    """Arrays of both views in units of the training rows."""
    blocks = [np.asarray(X) for _, X in train.items()]
    units = [(X.mean(axis=0), np.where((s := X.std(axis=0)) > 0, s, 1)) for X in blocks]
    return [
        [(np.asarray(X) - m) / s for (_, X), (m, s) in zip(own.items(), units, strict=True)]
        for own in (train, *others)
    ]


def correlation(weights, blocks):
    scores = [X @ w for X, w in zip(blocks, weights, strict=True)]
    if min(np.std(own) for own in scores) == 0:
        return 0.0
    return float(np.corrcoef(*scores)[0, 1])


def methods(folder):
    """Functions from training views to weights of standardized columns."""

    def ours(model):
        return lambda train: [W[:, 0] for W in model.fit(train).sparse_weights_.values()]

    def pls(train):
        (blocks,) = standardized(train)
        model = PLSCanonical(1, scale=False).fit(*blocks)
        return [model.x_weights_[:, 0], model.y_weights_[:, 0]]

    found = {
        "`SparseCCA(n_features=10, tau=1)`": ours(SparseCCA(n_features=10, tau=1.0)),
        "`SparseCCA(n_features=10, tau=.1)`": ours(SparseCCA(n_features=10, tau=0.1)),
        "scikit-learn PLSCanonical, all features": pls,
    }
    searches = {
        "`SparseCCA(tau=1)`, search": ours(SparseCCA(tau=1.0)),
        "`SparseCCA()`, search": ours(SparseCCA()),
    }
    if folder is not None:
        sys.path.append(folder)
        from cca_zoo.model_selection import GridSearchCV
        from cca_zoo.sparse import PMDCCA, SpanCCA

        def fitted(model):
            def weights_of(train):
                (blocks,) = standardized(train)
                best = model(blocks).fit(blocks)
                return [own[:, 0] for own in getattr(best, "best_estimator_", best).weights_]

            return weights_of

        def searched(model, grid):
            folds = KFold(5, shuffle=True, random_state=0)
            return fitted(lambda blocks: GridSearchCV(model, grid(blocks), cv=folds))

        def spans(blocks):  # of both views, as `SparseCCA` tries at first
            counts = counts_to_try(max(X.shape[1] for X in blocks), 1.0)
            return {"span": [[min(n, X.shape[1]) for X in blocks] for n in counts]}

        bounds = {"l1_bound": np.geomspace(0.05, 1, 18).tolist()}
        found |= {
            "cca-zoo PMDCCA, bound .2": fitted(lambda _: PMDCCA(l1_bound=0.2, random_state=0)),
            "cca-zoo SpanCCA, 10 features": fitted(lambda _: SpanCCA(span=10, random_state=0)),
        }
        pmd, span = PMDCCA(random_state=0), SpanCCA(random_state=0)
        searches |= {
            "cca-zoo PMDCCA, search of 18 bounds": searched(pmd, lambda _: bounds),
            "cca-zoo SpanCCA, search of the same numbers": searched(span, spans),
        }
    SparseCCA(n_features=1, tau=0.5).fit(np.eye(9)[:, :4], np.eye(9)[:, 2:])  # compiles
    return found | searches


def planted_sets(options):
    print("\n### Planted sets, 100 rows, 500 + 1,000 features, 10 true ones of each view\n")
    print(f"F1 of x, y / correlation of 2,000 new rows; CPU s; {options.sets} sets.\n")
    kinds = {
        "a=.6": {"loading": 0.6},
        "a=.5": {"loading": 0.5},
        "a=.7, batch": {"loading": 0.7, "batch": True},
    }
    print("| method | " + " | ".join(kinds) + " |")
    print("|---" * 4 + "|")
    for name, fit in methods(options.cca_zoo).items():
        cells = []
        for of_data in kinds.values():
            found, seconds = [], 0.0
            for seed in range(options.sets):
                train, test = planted(seed, **of_data)
                start = process_time()
                weights = fit(train)
                seconds += process_time() - start
                x, y = (f1(np.flatnonzero(w)) for w in weights)
                found.append((x, y, correlation(weights, standardized(train, test)[1])))
            a, b, r = np.mean(found, axis=0)
            cells.append(f"{a:.2f}, {b:.2f}/{r:.3f}; {seconds / options.sets:.3f} s")
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


def sizes(options):
    print("\n### Searches at sizes, one planted set (a=.6)\n")
    print(
        "F1 of x, y / correlation of 2,000 new rows; CPU s of the search (memory beside the rows)."
    )
    print("cca-zoo: 18 settings x 5 folds, from one fit each of settings 1, 9 and 18 on a fold.\n")
    shapes = {
        "5,000 x (500 + 500)": (5000, (500, 500)),
        "200 x (20,000 + 1,000)": (200, (20_000, 1000)),
    }
    print("| method | " + " | ".join(shapes) + " |")
    print("|---" * 3 + "|")
    lines: dict[str, list[str]] = {}
    for n, widths in shapes.values():
        train, test = planted(0, n=n, widths=widths)
        for name, fit in methods(options.cca_zoo).items():
            if name.startswith("`") and name.endswith("search"):
                with peak_memory() as peak:
                    start = process_time()
                    weights = fit(train)
                    seconds = process_time() - start
                x, y = (f1(np.flatnonzero(w)) for w in weights)
                r = correlation(weights, standardized(train, test)[1])
                cell = f"{x:.2f}, {y:.2f}/{r:.3f}; {seconds:.2f} s ({peak['MB']:.0f} MB)"
                lines.setdefault(name, []).append(cell)
        for name, fits in peers_of_three(options.cca_zoo).items():
            (blocks,) = standardized(train[: n * 4 // 5])
            start = process_time()
            for model in fits:
                model.fit(blocks)
            lines.setdefault(name, []).append(f"{30 * (process_time() - start):.1f} s")
    for name, cells in lines.items():
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


def peers_of_three(folder):
    """Models of three of 18 settings of cca-zoo."""
    if folder is None:
        return {}
    from cca_zoo.sparse import PMDCCA, SpanCCA  # `methods` made them known

    bounds, spans = np.geomspace(0.05, 1, 18)[[0, 8, 17]], (2, 50, 500)
    return {
        "cca-zoo PMDCCA": [PMDCCA(l1_bound=own, random_state=0) for own in bounds],
        "cca-zoo SpanCCA": [SpanCCA(span=own, random_state=0) for own in spans],
    }


def real_sets(options):
    print("\n### Real data: correlation of held-out rows, first component, 5 folds\n")
    repeats = max(1, options.repeats // 2)
    print(f"Mean over {repeats} repeats (mean number of features of a view); CPU s of a fit.\n")
    sets = {}
    data = np.load(data_home() / "nutrimouse.npz")
    sets["nutrimouse (40 rows)"] = Views({"gene": data["gene"], "lipid": data["lipid"]})
    data = np.load(data_home() / "breast_tcga.npz")
    sets["breast, mRNA-protein (150)"] = Views(
        {"mrna": data["mrna_train"], "protein": data["protein_train"]}
    )
    data = np.load(data_home() / "liver_toxicity.npz")
    largest = np.argsort(-data["gene"].var(axis=0), kind="stable")[:400]
    sets["liver, 400 genes-clinic (64)"] = Views(
        {"gene": data["gene"][:, largest], "clinic": data["clinic"]}
    )
    print("| method | " + " | ".join(sets) + " |")
    print("|---" * (len(sets) + 1) + "|")
    for name, fit in methods(options.cca_zoo).items():
        cells = []
        for views in sets.values():
            found, counts, start = [], [], process_time()
            for repeat in range(repeats):
                folds = KFold(5, shuffle=True, random_state=repeat)
                for train, held_out in folds.split(range(len(views))):
                    weights = fit(views[train])
                    new = standardized(views[train], views[held_out])[1]
                    found.append(correlation(weights, new))
                    counts += [np.count_nonzero(w) for w in weights]
            seconds = (process_time() - start) / len(found)
            cells.append(f"{np.mean(found):.3f} ({np.mean(counts):.0f}); {seconds:.3f} s")
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


PARTS = {
    "classes": classes,
    "counts": counts,
    "planted": planted_sets,
    "real": real_sets,
    "sizes": sizes,
}


def main(options: argparse.Namespace) -> None:
    print(machine(1))
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        for part in names_in(options.parts, PARTS):
            PARTS[part](options)


if __name__ == "__main__":
    main(OPTIONS)
