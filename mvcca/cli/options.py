"""Options of all commands, with their help texts.

Only names and numbers are validated here. Importing this module loads the standard library only.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

from mvcca.cli import values
from mvcca.comparison.registry import DEFAULT_DEEP, GROUPS

# Values of `mvcca demo --data`; `mvcca.cli.demo` loads them.
DATA = {
    "digits": "handwritten digits cut into parts, included in scikit-learn",
    "mnist": "MNIST, left and right halves",
    "wikipedia": "articles in ten classes: image (sift, deep) and text (lda, w2v)",
    "coco-captions": "captions of the same image by five people (cap0 to cap4)",
    "scene": "photographs, one view per colour channel (L, u, v)",
    "mfeat": "six descriptions of handwritten digits (fac, fou, kar, mor, pix, zer)",
    "multi30k": "captions in four languages (en, de, fr, cs); no labels",
    "nutrimouse": "gene expressions and fatty acids of 40 mice",
}
_DATA_HELP = "\n".join(f"  {name:15s}{text}" for name, text in DATA.items())

_MEASURES_HELP = """retrieval measures, separated by commas; the first one determines the best
method (default: map@50,r@1,r@10,mrr):
  map, map@K      mean average precision of the whole ranking or of its first K items
  p@K, r@K        precision; share of queries with a right item among the first K
  mrr             mean reciprocal rank of the first right item
  mr, mean_rank   median and mean rank of the first right item
  ndcg, ndcg@K    normalized discounted gain; the gain is the number of shared labels
  recall@K        share of the right items among the first K
  wmap@K          weighted mean average precision, with --label-vectors
Variants such as map@50:cutoff are described in mvcca.evaluate_retrieval"""

DEMO_NOTE = """Data sets other than digits are read from files in the directory --data-home, by
default that of the environment variable MVCCA_DATA. If a file is missing, the error explains how
to make it."""

FILES_NOTE = """files:
  .npy             a dense matrix with one row per object
  .npz             one dense array, file.npz:KEY for one of several, or scipy.sparse.save_npz
  .h5, .zarr       one matrix, or file.h5:KEY for one of several (need h5py, zarr)
  .mat             one MATLAB matrix, or file.mat:NAME for one of several (7.3 needs h5py)
  .parquet         columns of numbers, or of lists of fixed length (needs pyarrow)
  .csv, .tsv       numbers, optionally with a header line of names or of pandas' 0, 1, 2, ...
  .txt             labels only: one line per object, labels separated by commas
Labels are one class per row, an indicator matrix of 0 and 1 (dense or sparse), real label vectors,
or the label sets of a .txt file. Column names (.csv, .tsv, .parquet) are stored in the model; rows
to project must have the same columns in the same order."""

_BLOCKS_NOTE = """Files in .npy, .h5, .zarr, .mat (7.3), .parquet and sparse (csr) .npz format are
read in blocks of rows, other files as a whole."""

TRANSFORM_NOTE = f"""{_BLOCKS_NOTE}
Scores are written in blocks, too; the output file appears when it is complete."""

SEARCH_NOTE = f"""{_BLOCKS_NOTE}
Projected galleries are kept in memory. Every row of a gallery is one item, identified by its row
number, from 0. Queries in several views are paired: their projections are added.
--bank takes training rows, not the queries: of the query views, and for csls and mutual of the
gallery views, too.

Output, by file extension:
  .csv, .parquet   one line per hit: query, rank (from 1), view (if several), item, score
  .npz             items and scores, (queries, k), and views (if several)
  .npy             items only
  .trec            a run file for TREC's tools: query Q0 item rank score mvcca; items of several
                   galleries are named view:item, and equal scores are lowered to keep the order
Scores are larger for better items; distances of --similarity euclidean are negative."""

MIGRATE_NOTE = f"""A map is fitted to the sample, whose items both models embedded, and applied to
every row of OLD, so that queries of the new model find rows that only the old one has seen. The map
is measured on pairs held out from the fit, and fitted again to all pairs before it is applied.

{_BLOCKS_NOTE}"""

# Parameters of estimators that train networks, and the options that set them.
NETWORK_FLAGS = {
    "max_epochs": "--epochs",
    "batch_size": "--batch-size",
    "hidden_layer_sizes": "--hidden",
    "validation_fraction": "--validation-fraction",
    "patience": "--patience",
    "device": "--device",
}

_VALIDATION_FRACTION = 0.1  # if only patience is given

_NETWORKS_NOTE = """\
The defaults depend on the number of training rows. Up to 10,000 rows: hidden layers of 256,256,
batches of 128 and 60 epochs; the scaling of ds-dcca starts at one, and the decorrelation of
soft-cca is 1. More rows, as published: hidden layers of 800,800, batches of 750 and 100 epochs.
Batches have at least 8 rows per component, and ds-dcca warms up for half of the epochs. corrnet
uses batches of 100 and 50 epochs. The ridge of networks is 1e-4. Rows are not scaled: corrnet and
dccae expect features between about 0 and 1."""


def add_to_demo(command: ArgumentParser) -> None:
    """Add the options of `mvcca demo`."""
    command.add_argument(
        "--data", choices=DATA, default="digits", metavar="NAME", help=f"data set:\n{_DATA_HELP}"
    )
    command.add_argument(
        "--parts",
        choices=("halves", "quadrants"),
        help="views of the digits (default: halves and then quadrants; halves only with networks)",
    )
    command.add_argument(
        "--labels",
        metavar="KIND",
        help="labels to learn from. digits: digit or segments, the segments of a seven-segment\n"
        "display that show the digit (default: digit); nutrimouse: diet or genotype",
    )
    command.add_argument(
        "--views", type=values.names, metavar="NAME,...", help="views to use, as listed above"
    )
    command.add_argument("--data-home", metavar="DIR", help="directory of the data files")
    _add_comparison(command, n_components=None, report="mvcca-demo.html")


def add_to_compare(command: ArgumentParser) -> None:
    """Add the options of `mvcca compare`."""
    _add_inputs(command)
    command.add_argument(
        "--label-vectors",
        metavar="FILE",
        help="word vectors of the labels, for wmap@K; methods then learn from their sums. One row\n"
        "per label column, or a .txt or .vec file with a label and its numbers on each line",
    )
    _add_comparison(command, n_components=10, report=None)


def add_to_fit(command: ArgumentParser) -> None:
    """Add the options of `mvcca fit`."""
    _add_inputs(command)
    command.add_argument(
        "--method",
        type=values.method,
        required=True,
        metavar="NAME",
        help="name of the method, see `mvcca methods`",
    )
    command.add_argument(
        "--param",
        action="append",
        default=[],
        type=values.parameter,
        metavar="NAME=VALUE",
        dest="params",
        help="parameter of the method, such as n_components=64, reg=1e-3 or\n"
        'reg=\'{"image": 0.1, "text": 0}\' (default: as in the library; networks: see below)',
    )
    _add_output(command, "MODEL", "model file to write, such as model.mvcca", required=True)
    command.add_argument(
        "--resume", action="store_true", help="resume an interrupted fit from MODEL.partial/"
    )
    where = command.add_mutually_exclusive_group()
    where.add_argument(
        "--workers",
        type=values.positive_int,
        metavar="N",
        help="distribute the rows over N single-threaded processes (needs mvcca[distributed])",
    )
    where.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="distribute the rows over the workers of a Dask scheduler, such as tcp://host:8786;\n"
        "the workers must see the files under the same paths",
    )
    where.add_argument(
        "--device",
        metavar="NAME",
        help="compute on a GPU: cuda, cuda:1, cupy:0 or torch:cuda:0 (needs CuPy or torch);\n"
        "networks train on auto, cpu, cuda, cuda:1 or mps (default: auto)",
    )
    _add_block_rows(command)
    _add_networks(command, device=False)


def add_to_transform(command: ArgumentParser) -> None:
    """Add the options of `mvcca transform`."""
    _add_model(command)
    _add_files(command, "--view", "views", "rows to project, of a fitted view; may be repeated")
    _add_output(
        command,
        "FILE",
        "scores to write, .npy, .parquet, .arrow or .csv; with several views a name that\n"
        "contains {view}, such as scores-{view}.npy",
        required=True,
    )
    command.add_argument(
        "--vectors",
        choices=("query", "gallery"),
        help="write vectors instead of scores: their inner product, in any vector store, ranks as\n"
        "mvcca search does; of queries or of the rows to be searched",
    )
    command.add_argument(
        "--ids",
        metavar="FILE",
        help="ids of the rows, .npy or text with one per line, to write beside the scores",
    )
    _add_block_rows(command)


def add_to_search(command: ArgumentParser) -> None:
    """Add the options of `mvcca search`."""
    _add_model(command)
    _add_files(
        command, "--gallery", "galleries", "rows to search, of a fitted view; may be repeated"
    )
    _add_files(command, "--query", "queries", "queries; may be repeated to query by several views")
    command.add_argument(
        "-k",
        type=values.positive_int,
        default=10,
        metavar="K",
        help="number of items to find for each query (default: 10)",
    )
    command.add_argument(
        "--similarity",
        choices=("cosine", "euclidean", "inner"),
        help="similarity of projected rows (default: that of the method)",
    )
    command.add_argument(
        "--weighting",
        type=values.weighting,
        default="auto",
        metavar="NAME",
        help="weighting of components by their correlations: likelihood, profile-likelihood,\n"
        "likelihood-cosine, correlation, correlation^P, or none (default: that of the method)",
    )
    command.add_argument(
        "--hubness",
        choices=("csls", "inverted_softmax", "qb_norm", "mutual"),
        help="correct for items that are near to many queries; needs --bank",
    )
    _add_files(
        command,
        "--bank",
        "banks",
        "training rows to compare with, of the views of queries and galleries; may be repeated",
        required=False,
    )
    _add_output(
        command, "FILE", "hits to write, see below (default: .csv on standard output)", False
    )
    _add_block_rows(command)


def add_to_migrate(command: ArgumentParser) -> None:
    """Add the options of `mvcca migrate`."""
    command.add_argument("old", metavar="OLD", help="vectors of the old model, of all items")
    command.add_argument("new", metavar="NEW", help="vectors of the new model, of the sample")
    command.add_argument(
        "--sample",
        metavar="FILE",
        help="rows of OLD that the rows of NEW belong to, numbered from 0, in any format of a\n"
        "matrix (default: the first ones)",
    )
    _add_output(command, "FILE", "vectors to write, .npy", required=True)
    command.add_argument(
        "--method",
        choices=("affine", "procrustes"),
        default="affine",
        help="any affine map, or only rotations, which need fewer pairs (default: affine)",
    )
    command.add_argument(
        "--n-components",
        type=values.positive_int,
        metavar="N",
        help="rank of the map (default: not restricted)",
    )
    command.add_argument(
        "--reg",
        nargs="+",
        type=values.non_negative,
        default=(1e-3, 1e-2, 1e-1, 1.0),
        metavar="REG",
        help="ridge of the affine map in units of the mean variance; the best of several on a\n"
        "fifth of the pairs (default: 1e-3 1e-2 1e-1 1)",
    )
    command.add_argument(
        "--test-size",
        type=values.test_size,
        default=0.2,
        metavar="SIZE",
        help="fraction or number of held-out pairs (default: 0.2)",
    )
    command.add_argument(
        "--normalize", action="store_true", help="scale the vectors to length 1 before writing"
    )
    command.add_argument(
        "--seed", type=values.seed, default=0, metavar="N", help="random seed (default: 0)"
    )
    _add_block_rows(command)


def add_to_info(command: ArgumentParser) -> None:
    """Add the options of `mvcca info`."""
    _add_model(command)


def add_to_methods(_: ArgumentParser) -> None:
    """Add no options: `mvcca methods` has only those of all commands."""


def add_to_completion(command: ArgumentParser) -> None:
    """Add the options of `mvcca completion`."""
    command.add_argument("shell", choices=("bash", "zsh"), help="the shell to complete in")


def add_to_all(command: ArgumentParser) -> None:
    """Add the options that every command has."""
    command.add_argument("--json", action="store_true", help="print results as JSON")
    command.add_argument(
        "-q", "--quiet", action="store_true", help="print results only: no progress, no notes"
    )


def network_parameters(options: Namespace) -> dict[str, Any]:
    """Parameters of networks that the user set."""
    given = {n: value for n in NETWORK_FLAGS if (value := getattr(options, n)) is not None}
    if "patience" in given:
        given.setdefault("validation_fraction", _VALIDATION_FRACTION)
    return given


def _add_inputs(command: ArgumentParser) -> None:
    _add_files(command, "--view", "views", "a view with one row per object; give at least two")
    command.add_argument(
        "--labels",
        action="append",
        default=[],
        metavar="[NAME=]FILE",
        help="labels of the objects; or one NAME=FILE per view for unpaired views",
    )


def _add_files(
    command: ArgumentParser, flag: str, dest: str, text: str, required: bool = True
) -> None:
    command.add_argument(
        flag,
        action="append",
        default=[],
        required=required,
        type=values.named_file,
        metavar="NAME=FILE",
        dest=dest,
        help=text,
    )


def _add_model(command: ArgumentParser) -> None:
    command.add_argument("model", metavar="MODEL", help="model file written by `mvcca fit`")


def _add_output(command: ArgumentParser, metavar: str, text: str, required: bool) -> None:
    command.add_argument("-o", "--output", required=required, metavar=metavar, help=text)


def _add_block_rows(command: ArgumentParser) -> None:
    command.add_argument(
        "--block-rows",
        type=values.positive_int,
        metavar="N",
        help="rows per block in memory (default: about 64 MiB)",
    )


def _add_comparison(command: ArgumentParser, n_components: int | None, report: str | None) -> None:
    methods = command.add_mutually_exclusive_group()
    methods.add_argument(
        "--methods",
        type=values.methods,
        default=("default",),
        metavar="NAME,...",
        help="methods to compare, separated by commas; see `mvcca methods`. 'all' selects those\n"
        f"without networks, 'deep' those with networks (default: {','.join(GROUPS['default'])},\n"
        "without those that do not apply to the data)",
    )
    methods.add_argument(
        "--deep",
        action="store_const",
        const=DEFAULT_DEEP,
        dest="methods",
        help="compare cca, nkcca and all methods with networks (about a minute on digits)",
    )
    command.add_argument(
        "--cv",
        type=values.folds,
        default=5,
        metavar="N",
        help="number of folds, or fraction of objects in a single held-out part (default: 5;\n"
        "data sets with a published test part use that)",
    )
    command.add_argument(
        "--n-components",
        type=values.positive_int,
        default=n_components,
        metavar="N",
        help=f"dimension of the shared space (default: {n_components or 'depends on the data'})",
    )
    command.add_argument(
        "--reg",
        nargs="+",
        type=values.reg,
        metavar="REG",
        help="ridge in units of each view's mean variance, or 'auto' (default: 0.1; networks: see\n"
        "below); of several values, each method uses the best by cross-validation within the\n"
        "training part of each fold",
    )
    command.add_argument(
        "--label-similarity",
        choices=("sqexp", "exp", "cosine", "equal"),
        help="similarity of label vectors (default: sqexp)",
    )
    command.add_argument(
        "--sigma", type=values.positive, metavar="S", help="its bandwidth (default: 1)"
    )
    command.add_argument(
        "--measures",
        type=values.names,
        default=("map@50", "r@1", "r@10", "mrr"),
        metavar="NAME,...",
        help=_MEASURES_HELP.replace("%", "%%"),
    )
    command.add_argument(
        "--relevance",
        choices=("pairs", "labels"),
        help="right items show the same object, or share a label with the query (default: labels\n"
        "for map and p, pairs for other measures, if available)",
    )
    command.add_argument(
        "--directions",
        choices=("cross", "within", "all"),
        default="cross",
        help="queries for other views, for the view itself, or both (default: cross)",
    )
    command.add_argument(
        "--by-direction", action="store_true", help="also print every ordered pair of views"
    )
    command.add_argument(
        "--seed", type=values.seed, default=0, metavar="N", help="random seed (default: 0)"
    )
    command.add_argument(
        "--report",
        default=report,
        metavar="FILE",
        help="report to write, by its ending: .html (with figures if matplotlib is installed),\n"
        f".md, .csv or .json (default: {report or 'none'})",
    )
    command.add_argument(
        "--jobs", type=values.positive_int, metavar="N", help="number of processes (default: 1)"
    )
    if report:
        command.add_argument(
            "--no-report", action="store_const", const=None, dest="report", help="write no report"
        )
    _add_networks(command)


def _add_networks(command: ArgumentParser, *, device: bool = True) -> None:
    """Add options of networks; without `device` if the command already has that option."""
    group = command.add_argument_group("networks", _NETWORKS_NOTE)

    def add(parameter: str, **arguments: Any) -> None:
        group.add_argument(NETWORK_FLAGS[parameter], dest=parameter, **arguments)

    add("max_epochs", type=values.positive_int, metavar="N", help="maximum number of epochs")
    add("batch_size", type=values.positive_int, metavar="N", help="rows per batch")
    add(
        "hidden_layer_sizes",
        type=values.sizes,
        metavar="N,...",
        help="units of the hidden layers of every view, such as 800,800",
    )
    add(
        "validation_fraction",
        type=values.fraction,
        metavar="F",
        help="fraction of the rows for validation; the weights of the best epoch are kept",
    )
    add(
        "patience",
        type=values.positive_int,
        metavar="N",
        help="stop after N epochs without improvement on the validation rows (a tenth of the\n"
        "rows unless --validation-fraction is given)",
    )
    if device:
        add("device", metavar="NAME", help="auto, cpu, cuda, cuda:1 or mps (default: auto)")
