"""Exact search, compared with faiss and the bare products; a few queries, with those of GEMV.

    python -m benchmarks.scale.ranking [--threads 1] [--repeats 3] [--rows 40504] [--queries ROWS]
        [--columns 128] [-k 50] [--bank 40504]

The size is that of the MS-COCO validation set; ``--rows 100000 --queries 1000 --columns 200 -k 10``
is what a server holds. Claims: exact search takes at most 1.1 times as long as `faiss.IndexFlatIP`
and 1.15 times as long as the products, in CPU time; one query, and four, at most 1.3 times as long
as BLAS takes for their products; vectors of likelihood ratios at most 1.1 times as long as cosines;
and a search with CSLS at most 2.2 times as long as one without it, once the gallery has its terms,
which an index keeps. "with gallery" also prepares the gallery, as `mvcca.retrieval.top_k` does, and
"and terms" computes these terms. Products are those of all queries with the gallery, tile by tile:
CSLS needs one with the bank's items more, and one of the gallery with the bank's queries for its
terms. All alternate, so that other load affects all of them; a few queries run ten times per round.
"""

from __future__ import annotations

import argparse
import time


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=40_504)
    parser.add_argument("--queries", type=int)
    parser.add_argument("--columns", type=int, default=128)
    parser.add_argument("-k", type=int, default=50)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--bank", type=int, default=40_504)
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds

import faiss
import numpy as np
from threadpoolctl import threadpool_limits

from mvcca.machine.threads import each
from mvcca.measures import unit_rows
from mvcca.retrieval import CSLS, top_k
from mvcca.retrieval.hubs import Bank, corrected
from mvcca.retrieval.ranking import LikelihoodRatio
from mvcca.retrieval.search import Gallery, exact
from mvcca.retrieval.similarity import similarity_of

LIMIT = 1.1
LIMIT_PRODUCTS = 1.15
LIMIT_FEW = 1.3
LIMIT_LIKELIHOOD = 1.1
LIMIT_CSLS = 2.2


def product_only(queries, gallery):
    """Compute and discard every tile of the similarity matrix."""

    def multiply(rows):
        columns = exact.TILE_COLUMNS
        tile = np.empty((rows.stop - rows.start, columns), dtype=np.float32)
        for first in range(0, len(gallery), columns):
            block = gallery[first : first + columns]
            np.matmul(queries[rows], block.T, out=tile[:, : len(block)])

    each(multiply, exact.tile_rows(len(queries)))


def likelihood_vectors(queries, gallery):
    """Queries and items of the likelihood ratio, for correlations of .95 to .1."""
    names, k = ("x", "y"), queries.shape[1]
    rho = np.broadcast_to(np.linspace(0.95, 0.1, k), (2, 2, k))
    ratio = LikelihoodRatio(
        similarity=similarity_of("inner"),
        views=names,
        correlations=rho,
        deviations=dict.fromkeys(names, np.ones(k)),
    )
    asked = ratio.queries({"x": ratio.of_view("x", queries)}, ("y",))
    return asked, ratio.of_view("y", gallery)


def measure(function):
    wall, cpu = time.perf_counter(), time.process_time()
    result = function()
    return time.perf_counter() - wall, time.process_time() - cpu, result


def main(options: argparse.Namespace) -> None:

    rng = np.random.default_rng(0)
    queries, gallery = (
        unit_rows(rng.standard_normal((n, options.columns), dtype=np.float32))
        for n in (options.queries or options.rows, options.rows)
    )
    bank = tuple(
        unit_rows(rng.standard_normal((options.bank, options.columns), dtype=np.float32))
        for _ in range(2)
    )
    index = faiss.IndexFlatIP(options.columns)
    index.add(gallery)
    faiss.omp_set_num_threads(options.threads)

    ratios = likelihood_vectors(queries, gallery)
    with_terms = corrected(Gallery.of(gallery, similarity_of("cosine")), Bank(CSLS(), *bank))
    to_correct = with_terms.queries(queries)
    plain, four = Gallery.of(gallery, similarity_of("cosine")), queries[:4]
    contestants = {
        "one query": lambda: exact.search(plain, four[:1], options.k),
        "its GEMV": lambda: gallery @ four[0],
        "four": lambda: exact.search(plain, four, options.k),
        "products": lambda: gallery @ four.T,
        "mvcca": lambda: exact.search(plain, plain.queries(queries), options.k),
        "with gallery": lambda: top_k(queries, gallery, options.k),
        "CSLS": lambda: exact.search(with_terms, to_correct, options.k),
        "and terms": lambda: top_k(queries, gallery, options.k, hubness="csls", bank=bank),
        "likelihood": lambda: top_k(*ratios, options.k, "inner"),
        "faiss": lambda: index.search(queries, options.k),
        "GEMM": lambda: product_only(queries, gallery),
    }
    with threadpool_limits(options.threads):
        top_k(queries[:64], gallery, options.k)  # compile
        runs = {name: [] for name in contestants}
        for _ in range(options.repeats):
            for name, contestant in contestants.items():
                few = name in ("one query", "its GEMV", "four", "products")
                runs[name] += [measure(contestant) for _ in range(10 if few else 1)]

    print(
        f"{len(queries)} x {options.rows}, {options.columns} columns, float32, k = {options.k}, "
        f"bank of {options.bank}, threads: {options.threads}, minima of {options.repeats}"
    )
    wall, cpu = ({name: min(run[i] for run in runs[name]) for name in runs} for i in (0, 1))
    for name in contestants:
        print(
            f"{name:12} wall {wall[name]:7.4f} s ({wall[name] / wall['faiss']:5.3f} x faiss)   "
            f"cpu {cpu[name]:7.4f} s ({cpu[name] / cpu['faiss']:5.3f} x faiss)"
        )
    ours, theirs = runs["mvcca"][0][2], runs["faiss"][0][2]
    print(f"same items: {np.mean(ours[1] == theirs[1]):.4%} (the rest are ties within rounding)")
    print(f"CSLS with the terms: {cpu['and terms'] / cpu['mvcca']:.2f} x mvcca in CPU time")
    claims = (
        ("mvcca", "faiss", LIMIT),
        ("mvcca", "GEMM", LIMIT_PRODUCTS),
        ("one query", "its GEMV", LIMIT_FEW),
        ("four", "products", LIMIT_FEW),
        ("CSLS", "mvcca", LIMIT_CSLS),
        ("likelihood", "mvcca", LIMIT_LIKELIHOOD),
    )
    for name, other, limit in claims:
        ratio = cpu[name] / cpu[other]
        verdict = "holds" if ratio <= limit else "FAILS"
        print(f"claim {verdict}: {name} {ratio:.2f} x {other} <= {limit}")


if __name__ == "__main__":
    main(OPTIONS)
