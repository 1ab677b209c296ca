"""The arguments of all commands, what they mean, and which function runs a command.

Only names and numbers are checked here: what needs data to be judged is judged with the data.
Nothing but the standard library is imported before a command runs.
"""

from __future__ import annotations

import math
from argparse import Action, ArgumentParser, ArgumentTypeError, Namespace, RawTextHelpFormatter
from importlib import import_module
from typing import Any

from mvcca.cli.methods import DEFAULT, METHODS

__all__ = ["DATA", "build_parser"]

# What `mvcca demo --data` takes; how each is loaded stands in `mvcca.cli.demo`.
DATA = {
    "digits": "handwritten digits cut into parts, which come with scikit-learn",
    "mnist": "MNIST, left and right halves",
    "wikipedia": "articles in ten classes: image (sift, deep) and text (lda, w2v)",
    "coco-captions": "captions of the same image by five people (cap0 to cap4)",
    "scene": "photographs, a view per colour channel (L, u, v)",
    "mfeat": "six descriptions of handwritten digits (fac, fou, kar, mor, pix, zer)",
    "multi30k": "captions in four languages (en, de, fr, cs); no labels",
    "nutrimouse": "gene expressions and fatty acids of 40 mice",
}

_METHODS_HELP = (
    "methods to compare [what they learn from], separated by commas, or 'all':\n"
    + "\n".join(
        f"  {name:15s}{method.summary} [{method.learns_from}]" for name, method in METHODS.items()
    )
)
_DATA_HELP = "\n".join(f"  {name:15s}{text}" for name, text in DATA.items())

_METRICS_HELP = """measures of retrieval, separated by commas; the first one decides which is best
(default: map@50,r@1,r@10,mrr):
  map, map@K      mean average precision, of the whole list or of its first K
  p@K, r@K        precision; share of queries with a right item in the first K
  mrr             mean reciprocal rank of the first right item
  mr, mean_rank   median and mean rank of it
Variants such as map@50:cutoff are described at mvcca.evaluate_retrieval"""

_FILES_HELP = """files:
  .npy             a dense matrix, a row per object
  .npz             one dense array, file.npz:KEY for one of several, or scipy.sparse.save_npz
  .csv, .tsv       numbers; a first line of names is skipped
  .parquet         columns of numbers (needs pandas and pyarrow)
  .txt             labels only: a line per object, its labels separated by commas
Labels are a class per row, an indicator matrix of 0 and 1 (dense or sparse), real label vectors,
or the label sets of a .txt file."""

_DEMO_NOTE = """Data other than digits are read from files in the folder that --data-home or the
environment variable MVCCA_DATA names; where one is missing, the error says how to make it."""


class _Version(Action):
    """Prints the version; looked up only when asked for."""

    def __call__(self, parser: ArgumentParser, *_: Any) -> None:
        from mvcca import __version__

        print(f"mvcca {__version__}")
        parser.exit()


def build_parser() -> ArgumentParser:
    """The parser of `mvcca`; a parsed command has its function as ``run``."""
    parser = ArgumentParser(
        "mvcca",
        description="Multi-view CCA and cross-modal retrieval: which method finds, for a query in "
        "one view, the right items in another?",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and stop")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    _add_demo(commands)
    _add_compare(commands)
    return parser


def _add_demo(commands: Any) -> None:
    demo = _add_command(
        commands, "demo", "compare methods on data that are at hand", epilog=_DEMO_NOTE
    )
    demo.add_argument(
        "--data", choices=DATA, default="digits", metavar="NAME", help=f"data set:\n{_DATA_HELP}"
    )
    demo.add_argument(
        "--parts",
        choices=("halves", "quadrants"),
        help="views of the digits: two halves or four quadrants (default: each in turn)",
    )
    demo.add_argument(
        "--labels",
        metavar="KIND",
        help="labels to learn from. digits: digit or segments, the segments that a\n"
        "seven-segment display lights for it (default: both); nutrimouse: diet or genotype",
    )
    demo.add_argument(
        "--views", type=_names, metavar="NAME,...", help="views to take, as named above"
    )
    demo.add_argument("--data-home", metavar="FOLDER", help="where the files of the data are")
    _add_common(demo, n_components=None, report="mvcca-demo.html")


def _add_compare(commands: Any) -> None:
    compare = _add_command(
        commands, "compare", "compare methods on data in files of yours", epilog=_FILES_HELP
    )
    compare.add_argument(
        "--view",
        action="append",
        required=True,
        type=_named_file,
        metavar="NAME=FILE",
        dest="views",
        help="a view, a row per object; give at least two",
    )
    compare.add_argument(
        "--labels",
        action="append",
        default=[],
        metavar="[NAME=]FILE",
        help="labels of the objects; or one NAME=FILE per view, whose rows are then unpaired",
    )
    compare.add_argument(
        "--test-size",
        type=_test_size,
        default=0.2,
        metavar="SIZE",
        help="share, or number, of held-out objects (default: 0.2)",
    )
    _add_common(compare, n_components=10, report=None)


def _add_command(commands: Any, name: str, summary: str, epilog: str) -> ArgumentParser:
    command: ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog=epilog,
        formatter_class=RawTextHelpFormatter,
        allow_abbrev=False,
    )

    def run(options: Namespace, arguments: list[str]) -> None:
        import_module(f"mvcca.cli.{name}").run(options, arguments)

    command.set_defaults(run=run, parser=command)
    return command


def _add_common(command: ArgumentParser, n_components: int | None, report: str | None) -> None:
    command.add_argument(
        "--methods",
        type=_methods,
        default=DEFAULT,
        metavar="NAME,...",
        help=f"{_METHODS_HELP}\n(default: {','.join(DEFAULT)})",
    )
    command.add_argument(
        "--n-components",
        type=_positive_int,
        default=n_components,
        metavar="N",
        help=f"dimension of the shared space (default: {n_components or 'as suits the data'})",
    )
    command.add_argument(
        "--reg",
        nargs="+",
        type=_reg,
        default=[0.1],
        metavar="REG",
        help="ridge in units of each view's mean variance, or 'auto' (default: 0.1); of several\n"
        "each method takes the one that does best on a fifth of the training objects",
    )
    command.add_argument(
        "--similarity",
        choices=("sqexp", "exp", "cosine", "equal"),
        help="how alike two label vectors are (default: sqexp)",
    )
    command.add_argument("--sigma", type=_positive, metavar="S", help="its bandwidth (default: 1)")
    command.add_argument(
        "--metrics",
        type=_names,
        default=("map@50", "r@1", "r@10", "mrr"),
        metavar="NAME,...",
        help=_METRICS_HELP.replace("%", "%%"),
    )
    command.add_argument(
        "--relevance",
        choices=("pairs", "labels"),
        help="right items are those of the same object, or those that share a label\n"
        "(default: labels for map and p, pairs for the others, as far as there are any)",
    )
    command.add_argument(
        "--by-direction", action="store_true", help="print every ordered pair of views, too"
    )
    command.add_argument(
        "--seed", type=int, default=0, metavar="N", help="seed of all that is drawn (default: 0)"
    )
    command.add_argument(
        "--report",
        default=report,
        metavar="FILE",
        help=f"HTML page to write, with pictures (default: {report or 'none'})",
    )
    if report:
        command.add_argument(
            "--no-report", action="store_const", const=None, dest="report", help="write no page"
        )


# ---- types: what a word on the command line may be ----------------------------------------------


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not all(names) or len(set(names)) < len(names):
        raise ArgumentTypeError(f"expected different names separated by commas, got {text!r}")
    return names


def _methods(text: str) -> tuple[str, ...]:
    names = tuple(METHODS) if text == "all" else _names(text)
    for name in names:
        if name not in METHODS:
            raise ArgumentTypeError(f"unknown method {name!r}; known are {', '.join(METHODS)}")
    return names


def _named_file(text: str) -> tuple[str, str]:
    name, separator, file = text.partition("=")
    if not (name and separator and file):
        raise ArgumentTypeError(f"expected NAME=FILE, got {text!r}")
    return name, file


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ArgumentTypeError(f"expected a number, got {text!r}")
    return value


def _positive(text: str) -> float:
    value = _number(text)
    if value <= 0:
        raise ArgumentTypeError(f"expected a number above 0, got {text!r}")
    return value


def _positive_int(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"expected a whole number of at least 1, got {text!r}")
    return int(text)


def _reg(text: str) -> float | str:
    if text == "auto":
        return text
    value = _number(text)
    if value < 0:
        raise ArgumentTypeError(f"expected a number of at least 0, or auto, got {text!r}")
    return value


def _test_size(text: str) -> float | int:
    value = _positive_int(text) if text.isdecimal() else _positive(text)
    if isinstance(value, float) and value >= 1:
        raise ArgumentTypeError(f"expected a share below 1 or a whole number, got {text!r}")
    return value
