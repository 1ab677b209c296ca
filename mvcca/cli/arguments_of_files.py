"""The arguments of the commands that go from files to files: `fit`, `transform`, `search`, `info`.

Only names and numbers are checked here: what needs data to be judged is judged with the data.
"""

from __future__ import annotations

from argparse import ArgumentParser

from mvcca.cli import words
from mvcca.cli.arguments_of_networks import add_networks
from mvcca.cli.methods import listing

__all__ = [
    "FILES",
    "SEARCH_NOTE",
    "TRANSFORM_NOTE",
    "add_to_fit",
    "add_to_info",
    "add_to_search",
    "add_to_transform",
    "add_views_and_labels",
]

FILES = """files:
  .npy             a dense matrix, a row per object
  .npz             one dense array, file.npz:KEY for one of several, or scipy.sparse.save_npz
  .h5, .zarr       one matrix, or file.h5:KEY for one of several (need h5py, zarr)
  .mat             one MATLAB matrix, or file.mat:NAME for one of several (7.3 needs h5py)
  .parquet         columns of numbers, or of lists of fixed length (needs pyarrow)
  .csv, .tsv       numbers, perhaps below a line of names: words, or 0, 1, 2, ... as pandas writes
  .txt             labels only: a line per object, its labels separated by commas
Labels are a class per row, an indicator matrix of 0 and 1 (dense or sparse), real label vectors,
or the label sets of a .txt file. Names of columns (.csv, .tsv, .parquet) are kept in the model,
and rows to project must have the same, in the same order."""

_BY_ROWS = """Files in .npy, .h5, .zarr, .mat (7.3), .parquet and sparse (csr) .npz format are
read a block of rows at a time, other files as a whole."""

TRANSFORM_NOTE = f"""{_BY_ROWS}
Scores are written block by block, too, and the output appears when it is complete."""

SEARCH_NOTE = f"""{_BY_ROWS}
Projected galleries are kept in memory. Every row of a gallery is an item of its own and is called
by its number, from 0. Queries in several views are paired and searched as one: their projections
are added.

Output, by the ending of the file:
  .csv, .parquet   a line per hit: query, rank (from 1), view (of several galleries), item, score
  .npz             items and scores, (queries, k), and views of several galleries
  .npy             items alone
Scores are larger for better items; distances of --similarity euclidean are negative."""


def add_to_fit(fit: ArgumentParser) -> None:
    """Arguments of `mvcca fit`."""
    add_views_and_labels(fit)
    fit.add_argument(
        "--method",
        type=words.method,
        required=True,
        metavar="NAME",
        help=f"method [what it learns from]:\n{listing()}",
    )
    fit.add_argument(
        "--param",
        action="append",
        default=[],
        type=words.parameter,
        metavar="NAME=VALUE",
        dest="params",
        help="a parameter of the method, such as n_components=64, reg=1e-3 or\n"
        'reg=\'{"image": 0.1, "text": 0}\'; those not given have the defaults of the library,\n'
        "but for networks see below",
    )
    _add_output(fit, "MODEL", "model file to write, such as model.mvcca", required=True)
    fit.add_argument(
        "--resume",
        action="store_true",
        help="go on with a fit that was interrupted; what it had added up is in MODEL.partial/",
    )
    where = fit.add_mutually_exclusive_group()
    where.add_argument(
        "--workers",
        type=words.positive_int,
        metavar="N",
        help="spread the rows over N processes of one thread each (needs mvcca[distributed])",
    )
    where.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="or over the workers of a Dask scheduler, such as tcp://host:8786, who must see the\n"
        "files under the same names",
    )
    where.add_argument(
        "--device",
        metavar="NAME",
        help="or compute on a GPU: cuda, cuda:1, cupy:0 or torch:cuda:0 (needs CuPy or torch); of\n"
        "networks, train on auto, cpu, cuda, cuda:1 or mps (default: auto)",
    )
    _add_block_rows(fit)
    add_networks(fit, device=False)


def add_to_transform(transform: ArgumentParser) -> None:
    """Arguments of `mvcca transform`."""
    _add_model(transform)
    transform.add_argument(
        "--view",
        action="append",
        required=True,
        type=words.named_file,
        metavar="NAME=FILE",
        dest="views",
        help="rows to project, of a view that the model was fitted to; may be repeated",
    )
    _add_output(
        transform,
        "FILE",
        "scores to write, .npy, .parquet or .csv; of several views a name with {view} in it,\n"
        "such as scores-{view}.npy",
        required=True,
    )
    _add_block_rows(transform)


def add_to_search(search: ArgumentParser) -> None:
    """Arguments of `mvcca search`."""
    _add_model(search)
    search.add_argument(
        "--gallery",
        action="append",
        required=True,
        type=words.named_file,
        metavar="NAME=FILE",
        dest="galleries",
        help="rows to search, of a view that the model was fitted to; may be repeated",
    )
    search.add_argument(
        "--query",
        action="append",
        required=True,
        type=words.named_file,
        metavar="NAME=FILE",
        dest="queries",
        help="queries; may be repeated for queries in several views at once",
    )
    search.add_argument(
        "-k",
        type=words.positive_int,
        default=10,
        metavar="K",
        help="how many items to find for each query (default: 10)",
    )
    search.add_argument(
        "--similarity",
        choices=("cosine", "euclidean", "inner"),
        help="similarity of the rows that `mvcca transform` gives (default: the one that the\n"
        "method declares; for most cosine)",
    )
    _add_output(
        search,
        "FILE",
        "hits to write, see below (default: .csv on standard output)",
        required=False,
    )
    _add_block_rows(search)


def add_to_info(info: ArgumentParser) -> None:
    """Arguments of `mvcca info`."""
    _add_model(info)
    info.add_argument("--json", action="store_true", help="print one JSON object")


def add_views_and_labels(command: ArgumentParser) -> None:
    """What to learn from."""
    command.add_argument(
        "--view",
        action="append",
        required=True,
        type=words.named_file,
        metavar="NAME=FILE",
        dest="views",
        help="a view, a row per object; give at least two",
    )
    command.add_argument(
        "--labels",
        action="append",
        default=[],
        metavar="[NAME=]FILE",
        help="labels of the objects; or one NAME=FILE per view, whose rows are then unpaired",
    )


def _add_model(command: ArgumentParser) -> None:
    command.add_argument("model", metavar="MODEL", help="model file, as `mvcca fit` writes it")


def _add_output(command: ArgumentParser, metavar: str, text: str, required: bool) -> None:
    command.add_argument("-o", "--output", required=required, metavar=metavar, help=text)


def _add_block_rows(command: ArgumentParser) -> None:
    command.add_argument(
        "--block-rows",
        type=words.positive_int,
        metavar="N",
        help="rows in memory at a time (default: as many as fill about 64 MiB)",
    )
