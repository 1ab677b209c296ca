"""How often do intervals of nominal 90 % cover correlations and loadings? Beside the bootstrap.

Two Gaussian views of p features each, with one component of correlation ρ, on which the first
feature of each view has a loading of .6. "inverse" is `correlation_intervals`, with its mean
width, and "corrected" is `loading_intervals`; "percentile" are the 5th and 95th percentiles over
resamples, without either correction. "new rows": share of intervals held_out_low to held_out_high
that hold the correlation of the fitted variates in the population.

Other parts have rows of families, whose intervals are of all rows, by the number of independent
ones that they are worth, or of one row per family; few groups of rows; rows of multivariate t;
components of equal correlations, with the interval of their root mean square; and components that
were called clear of the noise edge.

    python -m benchmarks.defaults.interval_coverage [--seeds 300] [--resamples 200] [--parts ...]
"""

from __future__ import annotations

import argparse
import warnings


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=300)
    parser.add_argument("--resamples", type=int, default=200)
    parser.add_argument("--rows", type=int, nargs="+", default=[1000, 200], help="1000 200")
    parts = ["independent", "families", "few", "heavy", "ties", "clear"]
    parser.add_argument("--parts", nargs="+", choices=parts, default=parts)
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds

import numpy as np

from benchmarks._measure import machine
from mvcca.inspection import correlation_intervals, loading_intervals

WIDTHS = {1000: (5, 20), 200: (5, 10, 20)}
CORRELATIONS = (0.3, 0.5, 0.8)
LOADING = 0.6
TURN = np.array([[LOADING, -0.8], [0.8, LOADING]])


def sample(rng: np.random.Generator, n: int, p: int, rho: float) -> list[np.ndarray]:
    X, Y = rng.normal(size=(2, n, p))
    Y[:, 0] = rho * X[:, 0] + np.sqrt(1 - rho**2) * Y[:, 0]
    for V in (X, Y):
        V[:, :2] = V[:, :2] @ TURN
    return [X, Y]


def first_component(X: np.ndarray, Y: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Correlation, weights of both views, and loadings of the first view, by QR and SVD."""
    X, Y = X - X.mean(axis=0), Y - Y.mean(axis=0)
    (Q, R), (U, S) = np.linalg.qr(X), np.linalg.qr(Y)
    left, r, right = np.linalg.svd(Q.T @ U)
    weights = np.array([np.linalg.solve(R, left[:, 0]), np.linalg.solve(S, right[0])])
    return r[0], weights, X.T @ Q @ left[:, 0] / np.linalg.norm(X, axis=0)


def percentiles(X: np.ndarray, Y: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Ends (2, 2) of the percentile intervals of the correlation and the first loading."""
    weights, drawn = first_component(X, Y)[1], []
    for _ in range(n):
        rows = rng.integers(len(X), size=len(X))
        r, other, loadings = first_component(X[rows], Y[rows])
        scores = zip((X, Y), weights, other, strict=True)
        sign = np.sign(sum(np.corrcoef(V @ a, V @ b)[0, 1] for V, a, b in scores))
        drawn.append((r, sign * loadings[0]))
    return np.percentile(drawn, [5, 95], axis=0).T


def covers(ends: tuple[float, float], truth: float) -> bool:
    return bool(ends[0] <= truth <= ends[1])


def turned(weights: np.ndarray) -> np.ndarray:
    """Weights of the independent features, of unit length."""
    back = np.concatenate([TURN @ weights[:2], weights[2:]])
    return back / np.linalg.norm(back)


def judged(seed: int, n: int, p: int, rho: float, n_resamples: int) -> list[float]:
    """Whether each interval covers, and the width of that of the correlation."""
    rng = np.random.default_rng(seed)
    X, Y = sample(rng, n, p, rho)
    found = correlation_intervals(X, Y, random_state=seed)
    loadings = loading_intervals(X, Y, n_resamples=n_resamples, random_state=seed)
    of_r, of_loading = percentiles(X, Y, n_resamples, rng)
    _, (a, b), own = first_component(X, Y)
    a, b = turned(a), turned(b)
    sign = np.sign(a[0])  # of the component of percentiles; that of loading_intervals may differ
    ours = sign * np.sign(own[0] * loadings.in_sample["X"][0, 0])
    return [
        covers(of_r, rho),
        covers((found.low[0], found.high[0]), rho),
        found.high[0] - found.low[0],
        np.nan  # near the noise edge
        if np.isnan(found.held_out_low[0])
        else covers((found.held_out_low[0], found.held_out_high[0]), rho * a[0] * b[0]),
        covers(of_loading, sign * LOADING),
        covers((loadings.low["X"][0, 0], loadings.high["X"][0, 0]), ours * LOADING),
    ]


Interval = tuple[float, float]
FAMILIES = [  # rows, size, p, q, intraclass correlation, rho
    (240, 2, 8, 5, 0.33, 0.5),
    (240, 4, 8, 5, 0.5, 0.5),
    (300, 5, 15, 5, 0.5, 0.6),
    (240, 4, 8, 5, 0.5, 0.8),
]
FEW = [  # as above, of few groups
    (size * n_groups, size, 3, 3, icc, 0.7)
    for size, icc in ((4, 0.5), (20, 0.9), (50, 0.1), (50, 0.5))
    for n_groups in (3, 5, 8, 15)
]
HEAVY = [(5, 200, 5, 0.6), (5, 200, 10, 0.6), (5, 200, 20, 0.7), (3, 200, 10, 0.6)]
TIES = [(200, 5, (0.6,) * 3), (200, 10, (0.5,) * 10)]
CLEAR = [(60, 10, 0.7), (100, 10, 0.6), (200, 10, 0.5)]


def related(X: np.ndarray, Y: np.ndarray, rho: tuple[float, ...]) -> list[np.ndarray]:
    """Views of these independent features, the first of which correlate."""
    k, r = len(rho), np.array(rho)
    Y[:, :k] = r * X[:, :k] + np.sqrt(1 - r**2) * Y[:, :k]
    return [X, Y]


def of_families(
    seed: int, n: int, size: int, p: int, q: int, icc: float, rho: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two views of rows in families, and the families."""
    rng, groups = np.random.default_rng(seed), np.repeat(np.arange(n // size), size)
    X, Y = (
        np.sqrt(icc) * rng.standard_normal((n // size, k))[groups]
        + np.sqrt(1 - icc) * rng.standard_normal((n, k))
        for k in (p, q)
    )
    X, Y = related(X, Y, (rho,))
    return X, Y, groups


def of_common_scale(
    seed: int, degrees: int, n: int, p: int, rho: float
) -> tuple[np.ndarray, np.ndarray]:
    """Two views of rows of a multivariate t."""
    rng = np.random.default_rng(seed)
    X, Y = related(rng.standard_normal((n, p)), rng.standard_normal((n, p)), (rho,))
    scale = np.sqrt(degrees / rng.chisquare(degrees, (n, 1)))
    return X * scale, Y * scale


def of_normal(seed: int, n: int, p: int, rho: tuple[float, ...]) -> list[np.ndarray]:
    """Two views of normal rows."""
    rng = np.random.default_rng(seed)
    return related(rng.standard_normal((n, p)), rng.standard_normal((n, p)), rho)


def interval(X: np.ndarray, Y: np.ndarray, groups: np.ndarray | None = None, cv: int = 2) -> tuple:
    found = correlation_intervals(X, Y, groups=groups, cv=cv, random_state=0)
    return found.low, found.high, found.flags, found.n_effective


def shown(ends: list[Interval], truth: float) -> str:
    """Share of intervals that hold the truth, and their mean width."""
    widths = [high - low for low, high in ends]
    return f"{np.mean([covers(own, truth) for own in ends]):.2f} ({np.mean(widths):.2f})"


def report_families(n_seeds: int) -> None:
    print("\n| n, size, p, q, icc, rho | first row | all rows, as worth | as independent | worth |")
    print("|---|---|---|---|---|")
    for case in FAMILIES:
        n, size, *_, rho = case
        first = np.arange(0, n, size)
        ends: list[list[Interval]] = [[], [], []]
        worth = []
        for seed in range(n_seeds):
            X, Y, groups = of_families(seed, *case)
            ways = (X[first], Y[first]), (X, Y, groups), (X, Y)
            for own, way in zip(ends, ways, strict=True):
                low, high, _, n_effective = interval(*way)
                own.append((low[0], high[0]))
                worth += [n_effective] * (len(way) == 3)
        cells = " | ".join(shown(own, rho) for own in ends)
        print(f"| {case} | {cells} | {np.mean(worth):.0f} |", flush=True)


def report_few(n_seeds: int) -> None:
    print("\n| groups, size, icc | correlation (width) | loading (width) |\n|---|---|---|")
    for case in FEW:
        n, size, *_, icc, rho = case
        ends: tuple[list[Interval], list[Interval]] = ([], [])
        for seed in range(n_seeds):
            X, Y, groups = of_families(seed, *case)
            X[:, :2] = X[:, :2] @ TURN
            low, high, *_ = interval(X, Y, groups, cv=n // size)
            ends[0].append((low[0], high[0]))
            found = loading_intervals(X, Y, groups=groups, n_resamples=100, random_state=seed)
            # The component whose sign is told by its largest loading, of the second feature: -.8.
            sign = -np.sign(found.in_sample["X"][1, 0])
            both = sorted((sign * found.low["X"][0, 0], sign * found.high["X"][0, 0]))
            ends[1].append((both[0], both[1]))
        cells = f"{shown(ends[0], rho)} | {shown(ends[1], LOADING)}"
        print(f"| {n // size}, {size}, {icc} | {cells} |", flush=True)


def report_heavy(n_seeds: int) -> None:
    print("\n| multivariate t, n, p, rho | covered (width) | worth |\n|---|---|---|")
    for degrees, n, p, rho in HEAVY:
        ends, worth = [], []
        for seed in range(n_seeds):
            low, high, _, n_effective = interval(*of_common_scale(seed, degrees, n, p, rho))
            ends.append((low[0], high[0]))
            worth.append(n_effective)
        cells = f"{shown(ends, rho)} | {np.mean(worth):.0f}"
        print(f"| t({degrees}), {n}, {p}, {rho} | {cells} |", flush=True)


def report_ties(n_seeds: int) -> None:
    print("\n| n, p, rho | intervals of several | covered (width) |\n|---|---|---|")
    for n, p, rho in TIES:
        ends = []
        for seed in range(n_seeds):
            low, high, flags, _ = interval(*of_normal(seed, n, p, rho))
            if "components 1 to" in flags[0]:
                ends.append((low[0], high[0]))
        print(f"| {n}, {p}, {len(rho)} x {rho[0]} | {len(ends)} | {shown(ends, rho[0])} |")


def report_clear(n_seeds: int) -> None:
    print("\n| n, p, rho | just clear of the edge | interval (width) | given that (width) |")
    print("|---|---|---|---|")
    for n, p, rho in CLEAR:
        plain: list[Interval] = []
        given: list[Interval] = []
        for seed in range(n_seeds):
            low, high, flags, _ = interval(*of_normal(seed, n, p, (rho,)))
            if " given that " in flags[0]:
                plain.append((low[0], high[0]))
                first, last = flags[0].split(" given ")[0].split(" to ")
                given.append((float(first), float(last)))
        cells = f"{len(given)} | {shown(plain, rho)} | {shown(given, rho)}"
        print(f"| {n}, {p}, {rho} | {cells} |", flush=True)


def main(options: argparse.Namespace) -> None:
    warnings.simplefilter("ignore")  # components near the noise edge
    print(machine(1), "\n")
    if "independent" in options.parts:
        report_independent(options)
    others = {
        "families": report_families,
        "few": report_few,
        "heavy": report_heavy,
        "ties": report_ties,
        "clear": report_clear,
    }
    for part, report in others.items():
        if part in options.parts:
            report(options.seeds)


def report_independent(options: argparse.Namespace) -> None:
    print(
        "| n, p | rho | percentile | inverse (width) | new rows | loading, percentile "
        "| loading, corrected |\n|---|---|---|---|---|---|---|",
        flush=True,
    )
    for n in options.rows:
        for p in WIDTHS.get(n, (5,)):
            for rho in CORRELATIONS:
                found = [judged(s, n, p, rho, options.resamples) for s in range(options.seeds)]
                bootstrap, inverse, width, new, raw, corrected = np.nanmean(found, axis=0)
                print(
                    f"| {n}, {p} | {rho} | {bootstrap:.2f} | {inverse:.2f} ({width:.2f}) "
                    f"| {new:.2f} | {raw:.2f} | {corrected:.2f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main(OPTIONS)
