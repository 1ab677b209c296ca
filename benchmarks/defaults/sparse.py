"""Which features does SparseCCA select: starts, tau, counts, components and cost.

    python -m benchmarks.defaults.sparse [--parts starts correlation counts components cost]

Planted sets have 100 rows and 500 + 1,000 features: 10 true ones of each view have a loading on one
variable that the views share, the rest are noise. "batch": 50 more of each view follow a factor
(loading .8) of that view alone. Each table stands beside the figures of the prototype, in brackets,
where it measured the same. Real data are read from the directory MVCCA_DATA.
"""

from __future__ import annotations

import argparse
import warnings
from time import process_time


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", help="all by default")
    parser.add_argument("--sets", type=int, default=5, help="planted sets of each kind")
    parser.add_argument("--repeats", type=int, default=2, help="of nested folds of real data")
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds

import numpy as np
from sklearn.model_selection import KFold
from threadpoolctl import threadpool_limits

from benchmarks._arguments import names_in
from benchmarks._measure import machine
from benchmarks.real import data_home
from mvcca import CCA, RGCCA, SparseCCA, Views

N_TRUE, N_BATCH = 10, 50


def planted(seed, loading=0.6, batch=False, n=100, widths=(500, 1000), n_true=(10,), factors=None):
    """Views of training rows and of 2,000 new rows; `n_true` features of each shared variable."""
    rng = np.random.default_rng(seed)
    loadings = [loading] * len(n_true) if factors is None else factors
    total = n + 2000
    shared = rng.standard_normal((total, max(1, len(n_true))))
    blocks = {}
    for name, p in zip("xyz", widths, strict=False):
        X, start = rng.standard_normal((total, p)), 0
        for k, (count, a) in enumerate(zip(n_true, loadings, strict=True)):
            own = slice(start, start + count)
            X[:, own] = a * shared[:, [k]] + np.sqrt(1 - a * a) * X[:, own]
            start += count
        if batch:
            own = slice(start, start + N_BATCH)
            X[:, own] = 0.8 * rng.standard_normal((total, 1)) + 0.6 * X[:, own]
        blocks[name] = X
    views = Views(blocks)
    return views[:n], views[n:]


def f1(chosen, n_true=N_TRUE):
    hits = np.sum(np.asarray(chosen) < n_true)
    return 2 * hits / (len(chosen) + n_true)


def held_out(model, views, component=0):
    """Correlation of the scores of new rows, of the first two views."""
    x, y, *_ = model.transform(views).blocks.values()
    return float(np.corrcoef(x.matrix[:, component], y.matrix[:, component])[0, 1])


def starts(options):
    print("\n### Starts: 10 features asked, tau = 1\n")
    print("Mean over sets: share with the best objective / F1 of x / held-out correlation.\n")
    kinds = {
        "a=.6, shrink": ({"loading": 0.6}, {"shrink": True}),
        "a=.5, hard": ({"loading": 0.5}, {}),
        "a=.7, batch, hard": ({"loading": 0.7, "batch": True}, {}),
    }
    expected = {
        "own": (".75/.75/.628", ".17/.22/.147", ""),
        "svd": ("1.00/.99/.839", ".67/.68/.509", ".00/-.001"),
        "columns": ("1.00/.99/.839", "1.00/.95/.733", "1.00/.904"),
    }
    found = {start: [] for start in expected}
    for of_data, of_model in kinds.values():
        values = {start: [] for start in expected}
        for seed in range(options.sets):
            train, test = planted(seed, **of_data)
            for start, own in values.items():
                model = RGCCA(n_features=10, scale_views=False, start=start, **of_model).fit(train)
                own.append(
                    (model.objective_[0], f1(model.selected_["x"][0]), held_out(model, test))
                )
        best = np.max([[v[0] for v in own] for own in values.values()], axis=0)
        for start, own in values.items():
            objectives, scores, r = np.array(own).T
            reached = np.mean(objectives >= best * (1 - 1e-6))
            found[start].append(f"{reached:.2f}/{scores.mean():.2f}/{r.mean():.3f}")
    print("| start | " + " | ".join(kinds) + " |")
    print("|---" * 4 + "|")
    for start, cells in found.items():
        both = [f"{c} ({e})" if e else c for c, e in zip(cells, expected[start], strict=True)]
        print(f"| {start} | " + " | ".join(both) + " |")


def real(name):
    if name == "nutrimouse":
        data = np.load(data_home() / "nutrimouse.npz")
        return Views({"gene": data["gene"], "lipid": data["lipid"]})
    data = np.load(data_home() / "breast_tcga.npz")
    return Views({"mrna": data["mrna_train"], "protein": data["protein_train"]})


def correlation(options):
    print("\n### tau: held-out correlation of the first component, nested 5 folds\n")
    print("Mean over repeats, ± the standard deviation of the means of repeats (mean number of")
    print("features of a view). In brackets: the prototype's, with numbers up to 30.\n")
    models = {
        "tau=1": SparseCCA(tau=1.0),
        "tau=.1": SparseCCA(tau=0.1),
        "tau by folds": SparseCCA(),
        'all features, CCA(reg="cv")': CCA(1, reg="cv", cv_goal="correlation", scale=True),
    }
    expected = {
        "nutrimouse": (".686 (8)", ".890 (11)", ".856 (13)", ".901"),
        "breast": (".909 (19)", ".902 (18)", ".910 (22)", ".915"),
    }
    print("| data | " + " | ".join(models) + " |")
    print("|---" * 5 + "|")
    for name in ("nutrimouse", "breast"):
        views, cells = real(name), []
        for model, before in zip(models.values(), expected[name], strict=True):
            found, counts = [], []
            for repeat in range(options.repeats):
                folds = KFold(5, shuffle=True, random_state=repeat).split(range(len(views)))
                found.append([])
                for train, test in folds:
                    model.fit(views[train])
                    found[-1].append(held_out(model, views[test]))
                    counts += [
                        len(own[0]) for own in getattr(model, "selected_", {"": [[]]}).values()
                    ]
            number = f" ({np.mean(counts):.0f})" if np.sum(counts) else ""
            spread = np.mean(found, axis=1).std(ddof=min(1, len(found) - 1))
            cells.append(f"{np.mean(found):.3f} ± {spread:.3f}{number} [{before}]")
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


def counts(options):
    print("\n### Numbers of features, unasked\n")
    print(
        "`SparseCCA()` on planted sets: F1 of x, y / held-out correlation (mean number of x, y).\n"
    )
    kinds = {
        "a=.6": {"loading": 0.6},
        "a=.5": {"loading": 0.5},
        "a=.7, batch": {"loading": 0.7, "batch": True},
    }
    expected = {
        "a=.6": "1.00/.843, one number, hard, SVD start",
        "a=.5": ".90/.714, one number, hard, columns",
        "a=.7, batch": "1.00/.904, one number, hard, columns",
    }
    print("| data | tau=1 | tau by folds | prototype | CPU s, tau=1; by folds |")
    print("|---" * 5 + "|")
    for name, of_data in kinds.items():
        cells, seconds = [], []
        for model in (SparseCCA(tau=1.0), SparseCCA()):
            found, start = [], process_time()
            for seed in range(options.sets):
                train, test = planted(seed, **of_data)
                model.fit(train)
                x, y = (own[0] for own in model.selected_.values())
                found.append((f1(x), f1(y), held_out(model, test), len(x), len(y)))
            a, b, r, n_x, n_y = np.mean(found, axis=0)
            cells.append(f"{a:.2f}, {b:.2f}/{r:.3f} ({n_x:.0f}, {n_y:.0f})")
            seconds.append((process_time() - start) / options.sets)
        times = "; ".join(f"{s:.1f}" for s in seconds)
        print(f"| {name} | {cells[0]} | {cells[1]} | {expected[name]} | {times} |", flush=True)


def components(options):
    print("\n### When to stop: held-out correlation of each component, times the root of n\n")
    print("Three components of `SparseCCA(3, tau=1)`, as folds measured them (mean, and largest of")
    print(
        "the sets). With independent rows a correlation of unrelated scores has a root of about 1;"
    )
    print("the largest of many settings has more.\n")
    kinds = {
        "no shared variable": {"n_true": ()},
        "one (.7)": {"n_true": (10,), "loading": 0.7},
        "three (.8, .7, .7)": {"n_true": (10, 10, 10), "factors": (0.8, 0.7, 0.7)},
        "none, batch": {"n_true": (), "batch": True},
        "one (.7), batch": {"n_true": (10,), "loading": 0.7, "batch": True},
    }
    print("| data | n | first | second | third | components above 4 |")
    print("|---" * 6 + "|")
    for name, of_data in kinds.items():
        for n in (100, 300):
            found = []
            for seed in range(options.sets):
                train, _ = planted(seed, n=n, widths=(100, 150), **of_data)
                model = SparseCCA(3, tau=1.0).fit(train)
                found.append(np.sqrt(n) * np.pad(model.held_out_correlations_, (0, 3))[:3])
            mean, most, least = (f(found, axis=0) for f in (np.mean, np.max, np.min))
            cells = [
                f"{a:.1f} ({c:.1f} to {b:.1f})" for a, b, c in zip(mean, most, least, strict=True)
            ]
            kept = (np.cumprod(np.array(found) > 4, axis=1).sum(axis=1)).tolist()
            cells.append(", ".join(map(str, kept)))
            print(f"| {name} | {n} | " + " | ".join(cells) + " |", flush=True)


SIZES = ((1000, (500, 500)), (5000, (500, 500)), (200, (2000, 1000)), (200, (20_000, 1000)))


def cost(_):
    print("\n### Cost: seconds of the processor, tau = 1\n")
    print("| rows | features | fit with all numbers by 5 folds | of one number | ratio |")
    print("|---" * 5 + "|")
    for n, widths in SIZES:
        train, _ = planted(0, n=n, widths=widths)
        start = process_time()
        SparseCCA(tau=1.0).fit(train)
        middle = process_time()
        SparseCCA(tau=1.0, n_features=10).fit(train)
        end = process_time()
        search, fit = middle - start, end - middle
        sizes = f"{n:,} | {widths[0]:,} + {widths[1]:,}"
        print(f"| {sizes} | {search:.2f} | {fit:.2f} | {search / fit:.1f} |", flush=True)


PARTS = {own.__name__: own for own in (starts, correlation, counts, components, cost)}


def main(options: argparse.Namespace) -> None:
    warnings.simplefilter("ignore")  # of fewer components than asked for
    with threadpool_limits(1):
        print(machine(1))
        for name in names_in(options.parts, PARTS):
            PARTS[name](options)


if __name__ == "__main__":
    main(OPTIONS)
