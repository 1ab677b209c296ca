"""JRL of wide sparse views: steps that solve for rows beside steps that solve for features.

Views look like texts about the same objects (`_text_like`), with one of ten classes each. On the
smaller shape both routes run in turns, and their weights are compared. On the larger one the
features' systems would take hours, so that only the time of the rows' is measured.

    python -m benchmarks.scale.jrl_wide [--rows 960] [--features 2000] [--views 5] [--repeats 3]
        [--small 480 400 5]
"""

from __future__ import annotations

import argparse


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=960)
    parser.add_argument("--features", type=int, default=2_000)
    parser.add_argument("--views", type=int, default=5)
    parser.add_argument("--neighbors", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--small", type=int, nargs=3, default=(480, 400, 5), help="rows, features, views"
    )
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds

from unittest import mock

import numpy as np

from benchmarks._measure import in_turns, machine, peak_memory, ratio
from benchmarks._text_like import text_like
from mvcca import JRL, Views
from mvcca.linear import jrl_loss

_CLASSES = 10


def labelled(n_rows: int, n_features: int, n_views: int) -> tuple[Views, np.ndarray]:
    """Text-like views and classes: the strongest of some random combinations of words."""
    views = Views(text_like(n_rows, [n_features] * n_views))
    words = np.random.default_rng(1).standard_normal((n_features, _CLASSES))
    scores = views[views.names[0]] @ words
    return views, np.argmax(scores - scores.mean(axis=0), axis=1)


def main(options: argparse.Namespace) -> None:
    print(machine(1))
    views, y = labelled(*options.small)
    found: dict[str, JRL] = {}

    def fit(name: str, flops_by_features: float) -> None:
        with mock.patch.object(jrl_loss, "flops_by_features", return_value=flops_by_features):
            found[name] = JRL(n_neighbors=options.neighbors).fit(views, y)

    routes = {"rows": lambda: fit("rows", np.inf), "features": lambda: fit("features", 0.0)}
    routes["rows"]()  # compiles, and starts threads
    timings = in_turns(routes, options.repeats)
    rows, features = found["rows"], found["features"]
    apart = max(
        np.abs(rows.weights_[name] - W).max() / np.abs(W).max()
        for name, W in features.weights_.items()
    )
    print(f"{options.small[0]} x {options.small[2]} views of {options.small[1]} features:")
    print(f"  by rows{timings['rows']}; by features{timings['features']}")
    print(f"  rows / features {ratio(timings['rows'], timings['features'])}")
    print(f"  {rows.n_iter_} and {features.n_iter_} steps; weights apart by {apart:.0e}")
    views, y = labelled(options.rows, options.features, options.views)
    model = JRL(n_neighbors=options.neighbors)
    with peak_memory() as memory:
        timing = in_turns({"": lambda: model.fit(views, y)}, 1)[""]
    print(f"{options.rows} x {options.views} views of {options.features} features:")
    print(f"  by rows{timing}; {model.n_iter_} steps; {memory['MB']:.0f} MB above the data")


if __name__ == "__main__":
    main(OPTIONS)
