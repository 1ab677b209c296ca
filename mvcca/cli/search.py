"""`mvcca search`: find the best gallery rows for queries in other views."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from mvcca.cli.console import show
from mvcca.cli.errors import CommandError, UsageError
from mvcca.cli.inputs import by_name, files_of
from mvcca.cli.models import load_model
from mvcca.cli.output import (
    checked_suffix,
    replacing,
    writable,
    write_csv,
    write_json_lines,
    write_npy,
    write_parquet,
    write_trec_run,
)
from mvcca.cli.projection import Projection
from mvcca.cli.running import running
from mvcca.passes import row_blocks, watched
from mvcca.retrieval.bank_of_views import BankOfViews
from mvcca.retrieval.corrected_gallery import corrected
from mvcca.retrieval.gallery import Gallery
from mvcca.retrieval.ranking import Ranking
from mvcca.retrieval.runs import strictly_descending
from mvcca.retrieval.search import search
from mvcca.views import Views


def run(options: Namespace) -> None:
    """Run the command."""
    galleries = by_name(options.galleries, "--gallery")
    queries = by_name(options.queries, "--query")
    banks = by_name(options.banks, "--bank")
    if bool(banks) != (options.hubness is not None):
        raise UsageError("--hubness and --bank are used together")
    output = None
    if options.output is not None:
        _check_format(options.output, list(galleries))
        files = options.galleries + options.queries + options.banks
        output = writable(options.output, [Path(options.model), *files_of(files)])
    model = load_model(options.model)
    try:
        ranking = Ranking.of(model, options.similarity, options.weighting)
    except ValueError as error:
        raise CommandError(str(error)) from error
    with running(options):
        search = _Search(
            [Projection.open(ranking.project, name, file) for name, file in galleries.items()],
            [Projection.open(ranking.project, name, file) for name, file in queries.items()],
            options.k,
            ranking,
            [Projection.open(ranking.project, name, file) for name, file in banks.items()],
            options.hubness,
        )
        search.check()
        if output is None:
            write = write_json_lines if options.json else write_csv
            write(sys.stdout.buffer, search.tables())
            return
        with replacing(output) as file:
            _write(search, output.suffix.lower(), file)
    text = f"{output}: {options.k} hits for each of {search.n_queries:,} queries"
    show(options, text, {"file": str(output), "k": options.k, "queries": search.n_queries})


@dataclass(frozen=True, eq=False)
class _Search:
    """The k best gallery rows of every query."""

    galleries: list[Projection]
    queries: list[Projection]
    k: int
    ranking: Ranking
    banks: list[Projection]
    hubness: str | None

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
        galleries = self.prepared()
        views = Views({query.name: query.rows for query in self.queries})
        slices = list(row_blocks(views))

        def find(rows: slice) -> tuple[int, np.ndarray, np.ndarray]:
            queries = {query.name: query.part(rows) for query in self.queries}
            found = []
            for opened, start, gallery in zip(self.galleries, self.starts, galleries, strict=False):
                k = min(self.k, len(gallery))
                vectors = self.ranking.queries(queries, (opened.name,))
                scores, items = search(gallery, gallery.queries(vectors), k)
                found.append((scores, items + start))
            scores, items = (np.hstack(parts) for parts in zip(*found, strict=True))
            best = np.argsort(-scores, axis=1, kind="stable")[:, : self.k]
            return rows.start, *(np.take_along_axis(part, best, 1) for part in (scores, items))

        return watched(map(find, slices), views, slices)

    def prepared(self) -> list[Gallery]:
        """The galleries, corrected for hubs if asked for."""
        galleries = [
            Gallery.of(gallery.in_memory(), self.ranking.similarity) for gallery in self.galleries
        ]
        if self.hubness is None:
            return galleries
        rows = {bank.name: bank.in_memory() for bank in self.banks}
        is_paired = len({len(part) for part in rows.values()}) == 1
        bank = BankOfViews.of(self.hubness, rows if is_paired else Views.unpaired(rows))
        names = tuple(query.name for query in self.queries)
        return [
            corrected(gallery, bank.between(names, (opened.name,), self.ranking))
            for opened, gallery in zip(self.galleries, galleries, strict=True)
        ]

    def view_and_row(self, items: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """View and row of every item of the concatenated galleries."""
        which = np.searchsorted(self.starts, items, side="right") - 1
        names = np.array([gallery.name for gallery in self.galleries])
        return names[which], items - self.starts[which]

    def runs(self) -> Iterator[dict[str, np.ndarray]]:
        """The same tables with names of items, and scores that differ for each item of a query."""
        for start, scores, items in self.blocks():
            views, rows = self.view_and_row(items.ravel())
            names = rows.astype(str)
            if len(self.galleries) > 1:
                names = np.char.add(np.char.add(views, ":"), names)
            yield {
                "query": np.repeat(np.arange(start, start + len(items)), self.k),
                "item": names,
                "rank": np.tile(np.arange(1, self.k + 1), len(items)),
                "score": strictly_descending(scores).ravel(),
            }

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


def _check_format(output: str, galleries: Sequence[str]) -> None:
    suffix = checked_suffix(output, "hits", (".csv", ".parquet", ".npz", ".npy", ".trec"))
    if suffix == ".npy" and len(galleries) > 1:
        raise UsageError(
            "a .npy file cannot tell which gallery an item belongs to; write .npz, .csv or .parquet"
        )
    if (
        suffix == ".trec"
        and len(galleries) > 1
        and any(len(name.split()) > 1 for name in galleries)
    ):
        raise UsageError(
            "a .trec file separates columns by spaces, so names of galleries must not contain any"
        )


def _write(search: _Search, suffix: str, file: BinaryIO) -> None:
    if suffix == ".csv":
        write_csv(file, search.tables())
    elif suffix == ".trec":
        write_trec_run(file, search.runs())
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
