"""Options of all commands, in groups: what every user needs first, the rest by subject.

Only names and numbers are validated here. Importing this module loads the standard library only.
"""

from __future__ import annotations

from argparse import ArgumentParser, BooleanOptionalAction, Namespace
from collections.abc import Callable, Sequence
from typing import Any

from mvcca.cli import notes, values
from mvcca.comparison.registry import DEFAULT_DEEP, GROUPS

# Parameters of estimators that train networks, and the options that set them.
NETWORK_FLAGS = {
    "max_epochs": "--epochs",
    "batch_size": "--batch-size",
    "hidden_layer_sizes": "--hidden",
    "validation_fraction": "--validation-fraction",
    "patience": "--patience",
    "device": "--device",
}

_MIN_COUNT, _TEXT_COMPONENTS = 2, 100  # the defaults of `mvcca.comparison.texts`
_VALIDATION_FRACTION = 0.1  # if only patience is given
_SHORT_CHOICES = 20  # characters up to which choices are shown in place of a name

# Groups of options that several commands have.
_SETTINGS = "settings of methods"
_FILES = "how files are read"
_LARGE = "large data"


def add_to_demo(command: ArgumentParser) -> None:
    """Add the options of `mvcca demo`."""
    text = "parts of an image as views (default: halves, then quadrants; only halves with networks)"
    _choose(command, "--parts", ("halves", "quadrants"), text)
    text = """labels to learn from: the digit, or the segments of a seven-segment display that show
it (default: digit)"""
    _choose(command, "--labels", ("digit", "segments"), text, default="digit")
    _add_methods(command)
    _add_report(command, "mvcca-demo.html")
    text = "write no report"
    command.add_argument("--no-report", action="store_const", const=None, dest="report", help=text)
    _add_comparison(command, budget="20s")


def add_to_compare(command: ArgumentParser) -> None:
    """Add the options of `mvcca compare`."""
    _add_inputs(command)
    _add_methods(command)
    _add_report(command)
    measuring, settings, files, _ = _add_comparison(command, budget="10min")
    text = """groups of the objects: .npy or text with one per line, or with --id a table of ids and
groups; or one NAME=FILE per view for unpaired views. All objects of a group, such as captions of
one image, are in the same part of a split (default: objects with equal rows are a group)"""
    _add_repeated(measuring, "--groups", text, None, "[NAME=]FILE")
    text = """word vectors of the labels, for wmap@K; methods then learn from their sums. One row
per label column, or a .txt or .vec file with a label and its numbers on each line"""
    _add(settings, "--label-vectors", text, metavar="FILE")
    text = "names of the objects for the report: .npy, a column in .csv, or text with one per line"
    _add(files, "--ids", text, metavar="FILE")
    _add_header(files)


def add_to_fit(command: ArgumentParser) -> None:
    """Add the options of `mvcca fit`."""
    _add_inputs(command)
    text = "name of the method, see `mvcca methods`"
    _add(command, "--method", text, values.method, "NAME", required=True)
    _add_output(command, "model file to write, such as model.mvcca", "MODEL")
    settings = command.add_argument_group(_SETTINGS)
    text = """parameter of the method, such as n_components=64, reg=1e-3 or
reg='{"image": 0.1, "text": 0}' (default: chosen by folds where the method can do
so, otherwise as in the library; networks: see below)"""
    _add_repeated(settings, "--param", text, values.parameter, "NAME=VALUE", dest="params")
    tuning = settings.add_mutually_exclusive_group()
    text = """what the chosen settings find best among held-out rows: the same object, items of
the same class (needs --labels), or correlation (default: class if the method
learns from labels, otherwise object)"""
    _choose(tuning, "--goal", ("object", "class", "correlation"), text)
    text = "choose no settings: parameters that are not given are as in the library"
    _flag(tuning, "--no-tune", text)
    files = command.add_argument_group(_FILES)
    _add_header(files)
    large = command.add_argument_group(_LARGE)
    _add_block_rows(large)
    _flag(large, "--resume", "resume an interrupted fit from MODEL.partial/")
    where = large.add_mutually_exclusive_group()
    text = "distribute the rows over N single-threaded processes (needs mvcca[distributed])"
    _add(where, "--workers", text, values.positive_int)
    text = """distribute the rows over the workers of a Dask scheduler, such as tcp://host:8786;
the workers must see the files under the same paths"""
    _add(where, "--scheduler", text, metavar="ADDRESS")
    text = """compute on a GPU: cuda, cuda:1, cupy:0 or torch:cuda:0 (needs CuPy or torch);
networks train on auto, cpu, cuda, cuda:1 or mps (default: auto)"""
    _add(where, "--device", text, metavar="NAME")
    _add_texts(command)
    _add_networks(command, device=False)


def add_to_transform(command: ArgumentParser) -> None:
    """Add the options of `mvcca transform`."""
    _add_model(command, "fit", "align", "migrate")
    _add_files(command, "--view", "rows to project, of a fitted view; may be repeated", "views")
    _add_id(command, "column that identifies the rows, which is written beside their scores")
    text = """scores to write, .npy, .parquet, .arrow or .csv; with several views a name that
contains {view}, such as scores-{view}.npy"""
    _add_output(command, text)
    vectors = command.add_argument_group("vectors for a vector store")
    text = """write vectors instead of scores: their inner product, in any vector store, ranks as
mvcca search does; of queries or of the rows to be searched"""
    _choose(vectors, "--vectors", ("query", "gallery"), text)
    _add_weighting(vectors)
    text = "view of the queries, which a gallery needs to know if the model corrects for hubs"
    _add(vectors, "--query-view", text, metavar="NAME")
    text = "view that the queries search, which the likelihood needs to know"
    _add(vectors, "--target", text, metavar="NAME")
    files = command.add_argument_group(_FILES)
    text = """ids of the rows to write beside the scores, if no column has them: .npy, a column in
.csv, or text with one per line"""
    _add(files, "--ids", text, metavar="FILE")
    _add_header(files)
    _add_block_rows(files)


def add_to_search(command: ArgumentParser) -> None:
    """Add the options of `mvcca search`."""
    _add_model(command, "fit", "align")
    text = "rows to search, of a fitted view; may be repeated"
    _add_files(command, "--gallery", text, "galleries")
    _add_files(command, "--query", "queries; may be repeated to query by several views", "queries")
    _add(command, "-k", "number of items to find for each query", values.positive_int, "K", 10)
    text = """column that identifies the rows of galleries and queries; hits then name queries and
items by it, not by number"""
    _add_id(command, text)
    text = "hits to write, see below (default: .csv on standard output)"
    _add_output(command, text, required=False)
    ranking = command.add_argument_group("ranking")
    text = """search several galleries as one: row i of each shows the same item, and its
projections are added"""
    _flag(ranking, "--joint", text)
    text = "similarity of projected rows (default: that of the method)"
    _choose(ranking, "--similarity", ("cosine", "euclidean", "inner"), text)
    _add_weighting(ranking)
    text = """correct for items that are near to many queries, with the rows of --bank (default: as
the model was tuned)"""
    _choose(ranking, "--hubness", ("csls", "inverted_softmax", "qb_norm", "mutual"), text)
    text = "training rows to compare with, of the views of queries and galleries; may be repeated"
    _add_files(ranking, "--bank", text, "banks", required=False)
    files = command.add_argument_group(_FILES)
    _add_header(files)
    _add_block_rows(files)


def add_to_migrate(command: ArgumentParser) -> None:
    """Add the options of `mvcca migrate`."""
    command.add_argument("old", metavar="OLD", help="vectors of the old model, of all items")
    command.add_argument("new", metavar="NEW", help="vectors of the new model, of the sample")
    text = f"""rows of OLD that the rows of NEW belong to, in any format of a matrix; {notes.ROWS}.
May be left out if both files have the same number of rows, in the same order"""
    matched = command.add_mutually_exclusive_group()
    _add(matched, "--sample", text, metavar="FILE")
    _add_id(matched, "column that identifies the items in both files; rows are matched by it")
    _add_output(command, "mapped vectors of OLD to write, .npy, or the map itself, .mvcca")
    text = """what is mapped: the stored rows of OLD, new queries for an index of OLD that stays as
it is, or both into a shared space (default: items)"""
    _choose(command, "--direction", ("items", "queries", "both"), text, default="items")
    settings = command.add_argument_group("settings of the map")
    text = """any affine map (items), one per cluster of rows where that helps (local; items), the
bilinear form of CCA (queries, both), or only rotations (items, queries; default: affine for items,
cca otherwise)"""
    _choose(settings, "--method", ("affine", "local", "cca", "procrustes"), text)
    text = """ridge in units of the mean variance; of several, the one that maps left-out rows best
(default: 18 values from 1e-4 to 30, or for cca 6 from 0.03 to 10)"""
    _add(settings, "--reg", text, values.non_negative, "REG", nargs="+")
    text = "also measure maps of a half, a quarter and an eighth of the sample"
    _flag(settings, "--learning-curve", text)
    text = """scale the vectors to length 1 before writing (default: if those of the space
that they are mapped to have length 1)"""
    settings.add_argument("--normalize", action=BooleanOptionalAction, help=text)
    _flag(settings, "--force", "write even if the map is no better than one of permuted pairs")
    _add(settings, "--seed", "random seed", values.seed, "N", 0)
    files = command.add_argument_group(_FILES)
    _add_header(files)
    _add_block_rows(files)


def add_to_test(command: ArgumentParser) -> None:
    """Add the options of `mvcca test`."""
    text = "{}, one row per subject: .csv or .tsv with a header, or any file with a matrix"
    command.add_argument("first", metavar="X", help=text.format("one set of variables"))
    command.add_argument("second", metavar="Y", help=text.format("the other set"))
    text = """column that identifies the subjects in every file; rows are matched by it (default:
files have the same subjects in the same order)"""
    _add_id(command, text)
    text = """variables to remove from both sets, such as age and site; columns of text become
indicators"""
    _add(command, "--confounds", text, metavar="FILE")
    text = """families, sites or other groups of subjects that are not independent: a column of the
confounds, or a file with one per line, or with --id a table of ids and groups. Permutations
exchange whole groups of the same size"""
    _add(command, "--groups", text, metavar="COLUMN|FILE")
    _add_report(command, endings=".html")
    settings = command.add_argument_group("settings of the test")
    _flag(settings, "--within", "permute subjects within their groups, not whole groups")
    text = """principal components of each set (default: as many as explain 90 %% of its variance,
at most a tenth of the subjects)"""
    _add(settings, "--components", text, values.positive_int)
    text = """what to do with missing values of the two sets: refuse them, or learn from the values
that are there, by pairs of variables or by maximum likelihood (EM) (default: error)"""
    _choose(settings, "--missing", ("error", "pairwise", "em"), text, default="error")
    text = "transform variables by their ranks to normal distributions (default: yes)"
    settings.add_argument("--rank", action=BooleanOptionalAction, default=True, help=text)
    text = "remove squares of the confounds, too (default: yes)"
    settings.add_argument("--squares", action=BooleanOptionalAction, default=True, help=text)
    _add(settings, "--permutations", "number of permutations", values.positive_int, default=999)
    _add(settings, "--level", "coverage of the intervals", values.fraction, "F", 0.9)
    _add(settings, "--seed", "random seed", values.seed, default=0)
    _add(settings, "--jobs", "number of processes (default: 1)", values.positive_int)


def add_to_align(command: ArgumentParser) -> None:
    """Add the options of `mvcca align`."""
    command.add_argument("first", metavar="X", help="vectors of one set")
    command.add_argument("second", metavar="Y", help="vectors of the other set, of other items")
    text = f"""items of X and of Y that are known to belong together, in two columns: with --id
their ids, otherwise {notes.ROWS} (default: none is known)"""
    _add(command, "--pairs", text, metavar="FILE")
    _add_id(command, "column that identifies the items of X and of Y")
    _add_output(command, "model to write, .mvcca, of the views x and y")
    settings = command.add_argument_group("settings of the alignment")
    text = "CCA, or only rotations (default: cca)"
    _choose(settings, "--method", ("cca", "procrustes"), text, default="cca")
    text = """use pseudo-pairs if folds of the known pairs say that they help, or in any case
(default: auto)"""
    _choose(settings, "--pseudo-pairs", ("auto", "always"), text, default="auto")
    _add(settings, "--reg", "ridge in units of the mean variance", values.positive, "REG", 3.0)
    _flag(settings, "--force", "write even if the alignment failed")
    _add(settings, "--seed", "random seed", values.seed, "N", 0)
    files = command.add_argument_group(_FILES)
    _add_header(files)
    _add_block_rows(files)


def add_to_similarity(command: ArgumentParser) -> None:
    """Add the options of `mvcca similarity`."""
    text = "a file of one layer, .npy, with a row per object, or a folder of such files"
    command.add_argument("layers", metavar="LAYERS", nargs="+", help=text)
    text = "layers of another network for the same rows (default: each layer with each)"
    _add(command, "--other", text, metavar="LAYERS", nargs="+")
    text = "measures, separated by commas"
    _add(command, "--measures", text, values.names, "NAME,...", default="cka_unbiased")
    text = """ridge of the two mean correlations, in units of a layer's mean variance; layers wider
than there are objects need one"""
    _add(command, "--reg", text, values.non_negative, "REG", 0.0)
    _add(command, "--plot", "heat map of the first measure to write", metavar="FILE")
    settings = command.add_argument_group("settings of the measures")
    _flag(settings, "--raw", "the measures as published, which grow with the width of layers")
    text = "coverage of intervals, from ten groups of rows (default: no intervals)"
    _add(settings, "--level", text, values.fraction, "F")
    _add(settings, "--seed", "random seed", values.seed, "N", 0)


def add_to_info(command: ArgumentParser) -> None:
    """Add the options of `mvcca info`."""
    _add_model(command, "fit", "align", "migrate")


def add_to_methods(_: ArgumentParser) -> None:
    """Add no options: `mvcca methods` has only those of all commands."""


def add_to_completion(command: ArgumentParser) -> None:
    """Add the options of `mvcca completion`."""
    command.add_argument("shell", choices=SHELLS, help="the shell to complete in")


SHELLS = ("bash", "zsh", "fish")


def add_to_all(command: ArgumentParser) -> None:
    """Add the options that every command has."""
    output = command.add_argument_group("output")
    _flag(output, "--json", "print results as JSON")
    text = "print results only: no progress, no notes"
    output.add_argument("-q", "--quiet", action="store_true", help=text)
    output.add_argument("-h", "--help", action="help", help="show this help and exit")


def network_parameters(options: Namespace) -> dict[str, Any]:
    """Parameters of networks that the user set."""
    given = {n: value for n in NETWORK_FLAGS if (value := getattr(options, n)) is not None}
    if "patience" in given:
        given.setdefault("validation_fraction", _VALIDATION_FRACTION)
    return given


def _add(
    group: Any,  # a parser, or a group of its options
    flag: str,
    text: str,
    kind: Callable[[str], Any] | None = None,
    metavar: str = "N",
    default: Any = None,
    **more: Any,
) -> None:
    """Add an option with one value; its help states the default, if there is one."""
    if default is not None:
        text += f" (default: {default})"
    group.add_argument(flag, type=kind, metavar=metavar, default=default, help=text, **more)


def _add_repeated(
    group: Any,
    flag: str,
    text: str,
    kind: Callable[[str], Any] | None,
    metavar: str,
    **more: Any,
) -> None:
    _add(group, flag, text, kind, metavar, action="append", **more)
    group.set_defaults(**{more.get("dest", flag.strip("-")): []})


def _choose(group: Any, flag: str, names: Sequence[str], text: str, **more: Any) -> None:
    """Add an option with some values; many of them are listed in its text."""
    if len(",".join(names)) > _SHORT_CHOICES:
        more["metavar"] = "NAME"
        text = f"{', '.join(names[:-1])} or {names[-1]}: {text}"
    group.add_argument(flag, choices=names, type=str.lower, help=text, **more)


def _flag(group: Any, flag: str, text: str) -> None:
    group.add_argument(flag, action="store_true", help=text)


def _add_inputs(command: ArgumentParser) -> None:
    _add_files(command, "--view", "a view with one row per object; give at least two", "views")
    text = """column that identifies the objects in all files, labels included: rows are matched by
it, and an object may be missing from some views"""
    _add_id(command, text)
    text = "with --id, keep only the objects that are in all views, as some methods need"
    _flag(command, "--complete", text)
    text = "labels of the objects; or one NAME=FILE per view for unpaired views"
    _add_repeated(command, "--labels", text, None, "[NAME=]FILE")


def _add_id(group: Any, text: str) -> None:
    _add(group, "--id", text, metavar="COLUMN")


def _add_files(group: Any, flag: str, text: str, dest: str, required: bool = True) -> None:
    more = {"dest": dest, "required": required}
    _add_repeated(group, flag, text, values.named_file, "NAME=FILE", **more)


def _add_header(group: Any) -> None:
    text = """whether the first line of .csv and .tsv files is a header (default: words above
numbers are, and the 0, 1, 2, ... of pandas, which is reported)"""
    _choose(group, "--header", ("yes", "no"), text)


def _add_model(command: ArgumentParser, *written_by: str) -> None:
    *others, last = (f"`mvcca {name}`" for name in written_by)
    text = f"file written by {', '.join(others)} or {last}"
    command.add_argument("model", metavar="MODEL", help=text)


def _add_output(
    command: ArgumentParser, text: str, metavar: str = "FILE", required: bool = True
) -> None:
    command.add_argument("-o", "--output", required=required, metavar=metavar, help=text)


def _add_weighting(group: Any) -> None:
    text = """weighting of components by their correlations: likelihood, profile-likelihood,
likelihood-cosine, correlation, correlation^P, or none; with +csls at the end, of a tuned model,
hubs are corrected (default: as tuned, or that of the method)"""
    group.add_argument(
        "--weighting", type=values.weighting, metavar="NAME", default="auto", help=text
    )


def _add_block_rows(group: Any) -> None:
    text = "rows per block in memory (default: about 64 MiB)"
    _add(group, "--block-rows", text, values.positive_int)


def _add_methods(command: ArgumentParser) -> None:
    methods = command.add_mutually_exclusive_group()
    text = f"""methods to compare, separated by commas; see `mvcca methods`. 'all' selects those
without networks, 'deep' those with networks (default: {", ".join(GROUPS["default"])},
without those that do not apply to the data)"""
    _add(methods, "--methods", text, values.methods, "NAME,...")
    text = "compare cca, nkcca and all methods with networks (about a minute on digits)"
    methods.add_argument(
        "--deep", action="store_const", const=DEFAULT_DEEP, dest="methods", help=text
    )
    command.set_defaults(methods=("default",))


def _add_report(
    command: ArgumentParser,
    default: str | None = None,
    endings: str = ".html (with figures if matplotlib is installed), .md, .csv or .json",
) -> None:
    text = f"report to write, by its ending: {endings}"
    _add(command, "--report", text, metavar="FILE", default=default)


def _add_comparison(command: ArgumentParser, budget: str) -> tuple[Any, Any, Any, Any]:
    """Add the options of a comparison, and return the groups that they are in."""
    measuring = command.add_argument_group("what is measured")
    settings = command.add_argument_group(_SETTINGS)
    files = command.add_argument_group(_FILES)
    running = command.add_argument_group("time and randomness")
    _add(measuring, "--measures", notes.MEASURES.replace("%", "%%"), values.names, "NAME,...")
    command.set_defaults(measures=("map@50", "r@1", "r@10", "mrr"))
    text = """right items show the same object, or share a label with the query (default: labels
for map and p, pairs for other measures, if available)"""
    _choose(measuring, "--relevance", ("pairs", "labels"), text)
    text = "queries for other views, for the view itself, or both (default: cross)"
    _choose(measuring, "--directions", ("cross", "within", "all"), text, default="cross")
    _flag(measuring, "--by-direction", "also print every ordered pair of views")
    text = "number of folds, or fraction of objects in a single held-out part"
    _add(measuring, "--cv", text, values.folds, default=5)
    text = "choose no settings: compare methods at the values below and the library's defaults"
    _flag(settings, "--no-tune", text)
    text = """dimension of the shared space (default: chosen by folds; 10, in the demo 9, for
methods that are not tuned)"""
    _add(settings, "--n-components", text, values.positive_int)
    text = """ridge in units of each view's mean variance, 'auto' or 'oas' (default: chosen by
folds; 0.1 for methods that are not tuned; networks: see below); of several values, each
method uses the best by cross-validation within the training part of each fold"""
    _add(settings, "--reg", text, values.reg, "REG", nargs="+")
    text = """parameter of the methods that have it, such as n_neighbors=20; may be repeated. Of
several values, as in n_neighbors=5,20,80, each method uses the best, as with --reg"""
    _add_repeated(settings, "--param", text, values.parameter_values, "NAME=VALUE", dest="params")
    text = "similarity of label vectors (default: sqexp)"
    _choose(settings, "--label-similarity", ("sqexp", "exp", "cosine", "equal"), text)
    _add(settings, "--sigma", "its bandwidth (default: 1)", values.positive, "S")
    text = """time for all methods, such as 30s or 2h, or none for any: the cheapest are measured
first, at default settings if a search takes too long; the others are left out, with the reason"""
    _add(running, "--budget", text, str.lower, "TIME", budget)
    _add(running, "--seed", "random seed", values.seed, default=0)
    _add(running, "--jobs", "number of processes (default: 1)", values.positive_int)
    _add_networks(command)
    return measuring, settings, files, running


def _add_texts(command: ArgumentParser) -> None:
    group = command.add_argument_group("texts", notes.TEXTS)
    text = f"leave out words that occur less often (default: {_MIN_COUNT})"
    _add(group, "--min-count", text, values.positive_int)
    text = f"""number of features of texts that are not sequences of words (default:
{_TEXT_COMPONENTS})"""
    _add(group, "--text-components", text, values.positive_int)


def _add_networks(command: ArgumentParser, *, device: bool = True) -> None:
    """Add options of networks; without `device` if the command already has that option."""
    group = command.add_argument_group("networks", notes.NETWORKS)

    def add(parameter: str, text: str, kind: Any, metavar: str = "N") -> None:
        _add(group, NETWORK_FLAGS[parameter], text, kind, metavar, dest=parameter)

    add("max_epochs", "maximum number of epochs", values.positive_int)
    add("batch_size", "rows per batch", values.positive_int)
    text = "units of the hidden layers of every view, such as 800,800"
    add("hidden_layer_sizes", text, values.sizes, "N,...")
    text = "fraction of the rows for validation; the weights of the best epoch are kept"
    add("validation_fraction", text, values.fraction, "F")
    text = """stop after N epochs without improvement on the validation rows (a tenth of the
rows unless --validation-fraction is given)"""
    add("patience", text, values.positive_int)
    if device:
        add("device", "auto, cpu, cuda, cuda:1 or mps (default: auto)", None, "NAME")
