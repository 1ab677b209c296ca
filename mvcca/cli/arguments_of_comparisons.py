"""The arguments of `mvcca demo` and `mvcca compare`, and what they mean.

Only names and numbers are checked here: what needs data to be judged is judged with the data.
"""

from __future__ import annotations

from argparse import ArgumentParser

from mvcca.cli import words
from mvcca.cli.arguments_of_files import add_views_and_labels
from mvcca.cli.arguments_of_networks import add_networks
from mvcca.cli.methods import DEFAULT, DEFAULT_DEEP, listing

__all__ = ["DATA", "DEMO_NOTE", "add_to_compare", "add_to_demo"]

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
    "methods to compare [what they learn from], separated by commas; 'all' are those without\n"
    f"networks, 'deep' those with:\n{listing()}"
)
_DATA_HELP = "\n".join(f"  {name:15s}{text}" for name, text in DATA.items())

_MEASURES_HELP = """measures of retrieval, separated by commas; the first one decides which is best
(default: map@50,r@1,r@10,mrr):
  map, map@K      mean average precision, of the whole list or of its first K
  p@K, r@K        precision; share of queries with a right item in the first K
  mrr             mean reciprocal rank of the first right item
  mr, mean_rank   median and mean rank of it
Variants such as map@50:cutoff are described at mvcca.evaluate_retrieval"""

DEMO_NOTE = """Data other than digits are read from files in the folder that --data-home or the
environment variable MVCCA_DATA names; where one is missing, the error says how to make it."""


def add_to_demo(demo: ArgumentParser) -> None:
    """Arguments of `mvcca demo`."""
    demo.add_argument(
        "--data", choices=DATA, default="digits", metavar="NAME", help=f"data set:\n{_DATA_HELP}"
    )
    demo.add_argument(
        "--parts",
        choices=("halves", "quadrants"),
        help="views of the digits: two halves or four quadrants (default: each in turn; of\n"
        "networks the halves)",
    )
    demo.add_argument(
        "--labels",
        metavar="KIND",
        help="labels to learn from. digits: digit or segments, the segments that a\n"
        "seven-segment display lights for it (default: both); nutrimouse: diet or genotype",
    )
    demo.add_argument(
        "--views", type=words.names, metavar="NAME,...", help="views to take, as named above"
    )
    demo.add_argument("--data-home", metavar="FOLDER", help="where the files of the data are")
    _add_common(demo, n_components=None, report="mvcca-demo.html")


def add_to_compare(compare: ArgumentParser) -> None:
    """Arguments of `mvcca compare`."""
    add_views_and_labels(compare)
    compare.add_argument(
        "--test-size",
        type=words.test_size,
        default=0.2,
        metavar="SIZE",
        help="share, or number, of held-out objects (default: 0.2)",
    )
    _add_common(compare, n_components=10, report=None)


def _add_common(command: ArgumentParser, n_components: int | None, report: str | None) -> None:
    which = command.add_mutually_exclusive_group()
    which.add_argument(
        "--methods",
        type=words.methods,
        default=DEFAULT,
        metavar="NAME,...",
        help=f"{_METHODS_HELP}\n(default: {','.join(DEFAULT)})",
    )
    which.add_argument(
        "--deep",
        action="store_const",
        const=DEFAULT_DEEP,
        dest="methods",
        help="the methods with networks, with cca and nkcca beside them; of digits this takes\n"
        "about a minute",
    )
    command.add_argument(
        "--n-components",
        type=words.positive_int,
        default=n_components,
        metavar="N",
        help=f"dimension of the shared space (default: {n_components or 'as suits the data'})",
    )
    command.add_argument(
        "--reg",
        nargs="+",
        type=words.reg,
        metavar="REG",
        help="ridge in units of each view's mean variance, or 'auto' (default: 0.1, and of\n"
        "networks see below); of several each method takes the one that does best on a fifth\n"
        "of the training objects",
    )
    command.add_argument(
        "--label-similarity",
        choices=("sqexp", "exp", "cosine", "equal"),
        help="how alike two label vectors are (default: sqexp)",
    )
    command.add_argument(
        "--sigma", type=words.positive, metavar="S", help="its bandwidth (default: 1)"
    )
    command.add_argument(
        "--measures",
        type=words.names,
        default=("map@50", "r@1", "r@10", "mrr"),
        metavar="NAME,...",
        help=_MEASURES_HELP.replace("%", "%%"),
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
        "--seed",
        type=words.seed,
        default=0,
        metavar="N",
        help="seed of all that is drawn (default: 0)",
    )
    command.add_argument(
        "--report",
        default=report,
        metavar="FILE",
        help="HTML page to write (.html or .htm), with pictures if matplotlib is there\n"
        f"(default: {report or 'none'})",
    )
    if report:
        command.add_argument(
            "--no-report", action="store_const", const=None, dest="report", help="write no page"
        )
    add_networks(command)
