"""`mvcca search`: find the best gallery rows for queries in other views."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from mvcca.cli.console import printable
from mvcca.cli.errors import CommandError, UsageError
from mvcca.cli.inputs import by_name, files_of
from mvcca.cli.models import load_model
from mvcca.cli.output import (
    checked_suffix,
    replacing,
    writable,
    write_csv,
    write_npy,
    write_parquet,
)
from mvcca.cli.projection import Projection
from mvcca.cli.running import running
from mvcca.passes import row_blocks, watched
from mvcca.retrieval import top_k
from mvcca.retrieval.declared import Ranking
from mvcca.retrieval.similarity import Similarity
from mvcca.views import Views


def run(options: Namespace) -> None:
    """Run the command."""
    galleries = by_name(options.galleries, "--gallery")
    queries = by_name(options.queries, "--query")
    output = None
    if options.output is not None:
        _check_format(options.output, len(galleries))
        inputs = [Path(options.model), *files_of(options.galleries + options.queries)]
        output = writable(options.output, inputs)
    model = load_model(options.model)
    ranking = Ranking.of(model, options.similarity)
    with running(options):
        search = _Search(
            [Projection.open(ranking.project, name, file) for name, file in galleries.items()],
            [Projection.open(ranking.project, name, file) for name, file in queries.items()],
            options.k,
            ranking.similarity,
        )
        search.check()
        if output is None:
            write_csv(sys.stdout.buffer, search.tables())
            return
        with replacing(output) as file:
            _write(search, output.suffix.lower(), file)
    print(printable(f"{output}: {options.k} hits for each of {search.n_queries:,} queries"))


@dataclass(frozen=True, eq=False)
class _Search:
    """The k best gallery rows of every query."""

    galleries: list[Projection]
    queries: list[Projection]
    k: int
    similarity: Similarity

    @property
    def n_queries(self) -> int:
        return len(self.queries[0])

    @property
    def starts(self) -> np.ndarray:
        """Index of the first item of every gallery, and the total number of items."""
        return np.cumsum([0, *map(len, self.galleries)])

    def check(self) -> None:
        n_items = self.starts[-1]
        if self.k > n_items:
            raise CommandError(f"-k {self.k}: there are only {n_items} items")
        heights = {query.name: len(query) for query in self.queries}
        if len(set(heights.values())) > 1:
            found = ", ".join(f"{name} {height}" for name, height in heights.items())
            raise CommandError(
                f"queries in several views must have the same number of rows, got {found}"
            )

    def blocks(self) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """First query, scores and items (n_queries, k) of every block of queries."""
        gallery = np.concatenate([projection.in_memory() for projection in self.galleries])
        views = Views({query.name: query.rows for query in self.queries})
        slices = list(row_blocks(views))

        def find(rows: slice) -> tuple[int, np.ndarray, np.ndarray]:
            scores = np.sum([query.part(rows) for query in self.queries], axis=0)
            return rows.start, *top_k(scores, gallery, self.k, self.similarity)

        return watched(map(find, slices), views, slices)

    def view_and_row(self, items: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """View and row of every item of the concatenated galleries."""
        which = np.searchsorted(self.starts, items, side="right") - 1
        names = np.array([gallery.name for gallery in self.galleries])
        return names[which], items - self.starts[which]

    def tables(self) -> Iterator[dict[str, np.ndarray]]:
        """Tables with one line per hit, one table per block of queries."""
        for start, scores, items in self.blocks():
            n_queries = len(items)
            views, rows = self.view_and_row(items.ravel())
            yield {
                "query": np.repeat(np.arange(start, start + n_queries), self.k),
                "rank": np.tile(np.arange(1, self.k + 1), n_queries),
                **({"view": views} if len(self.galleries) > 1 else {}),
                "item": rows,
                "score": scores.ravel(),
            }


def _check_format(output: str, n_galleries: int) -> None:
    suffix = checked_suffix(output, "hits", (".csv", ".parquet", ".npz", ".npy"))
    if suffix == ".npy" and n_galleries > 1:
        raise UsageError(
            "a .npy file cannot tell which gallery an item belongs to; write .npz, .csv or .parquet"
        )


def _write(search: _Search, suffix: str, file: BinaryIO) -> None:
    if suffix == ".csv":
        write_csv(file, search.tables())
    elif suffix == ".parquet":
        write_parquet(file, search.tables())
    elif suffix == ".npy":
        shape = search.n_queries, search.k
        write_npy(file, (items for _, _, items in search.blocks()), shape, np.dtype(np.int64))
    else:
        _, scores, items = zip(*search.blocks(), strict=True)
        views, rows = search.view_and_row(np.concatenate(items))
        which = {"views": views} if len(search.galleries) > 1 else {}
        np.savez(file, items=rows, scores=np.concatenate(scores), **which)  # type: ignore[arg-type]
