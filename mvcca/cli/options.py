"""Options of all commands, in groups: what every user needs first, the rest by subject.

Options that are parameters of the function that a command calls are made of its documentation
(`signatures`). Written here is what differs: files, and what a function does not know. Only names
and numbers are validated. Importing this module loads the standard library only.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

from mvcca.cli import notes, values
from mvcca.cli.reading import add_id, add_reading
from mvcca.cli.signatures import add_parameters
from mvcca.cli.values import add_option
from mvcca.comparison.registry import DEFAULT_DEEP, GROUPS

# The functions that commands call, with the reasons why some of their parameters are no options.
STUDY = "mvcca.inspection.study"
ALIGN = "mvcca.interop.alignment.align_unpaired"
MIGRATE = "mvcca.interop.migration.fit_migration"
REPRESENTATIONS = "mvcca.interop.representations.compare_representations"
INDEX = "mvcca.retrieval.RetrievalIndex"
HITS = "mvcca.interop.Hits"
VECTORS = "mvcca.retrieval.retrieval_vectors"
COMPARE = "mvcca.comparison.compare"
NO_OPTIONS = {
    STUDY: {"X": "the file X", "y": "the file Y"},
    ALIGN: {"x": "the file X", "y": "the file Y"},
    MIGRATE: {"stored": "the file OLD"},
    REPRESENTATIONS: {},
    INDEX: {
        "estimator": "the file MODEL",
        "backend": "an exact search is faster than to build an index for one search",
    },
    HITS: {
        "index": "made of the model",
        "item_ids": "those of --id",
        "query_ids": "those of --id",
        "confounds": "a file of --gallery",
    },
    VECTORS: {"estimator": "the file MODEL"},
    COMPARE: {
        "X": "the files of --view",
        "y": "the files of --labels",
        "search": "several values of --reg or --param",
        "fit_labels": "the files of --labels, or the sums of --label-vectors",
        "progress": "shown at a terminal",
    },
}

# Parameters of estimators that train networks, and the options that set them.
NETWORK_FLAGS = {
    "max_epochs": "--epochs",
    "batch_size": "--batch-size",
    "hidden_layer_sizes": "--hidden",
    "validation_fraction": "--validation-fraction",
    "patience": "--patience",
}

MIN_COUNT, TEXT_COMPONENTS = 2, 100  # the defaults of `mvcca.comparison.texts`
_VALIDATION_FRACTION = 0.1  # if only patience is given

_REPEATED: dict[str, Any] = {"action": "append", "default": []}

# Groups of options that several commands have.
_SETTINGS = "settings of methods"
_FILES = "how files are read"

_IDS = ".npy, a column in .csv, or text with one per line"


def add_to_demo(command: ArgumentParser) -> None:
    """Add the options of `mvcca demo`."""
    text = """parts of an image as views (default: halves); quadrants are six pairs of views, and
take minutes: pass --budget none"""
    add_option(command, "--parts", text, choices=("halves", "quadrants"), default="halves")
    text = """labels to learn from: the digit, or the segments of a seven-segment display that show
it"""
    add_option(command, "--labels", text, choices=("digit", "segments"), default="digit")
    _add_methods(command)
    _add_report(command, default="mvcca-demo.html")
    text = "write no report"
    command.add_argument("--no-report", action="store_const", const=None, dest="report", help=text)
    _add_comparison(command, budget="20s")


def add_to_compare(command: ArgumentParser) -> None:
    """Add the options of `mvcca compare`."""
    _add_inputs(command)
    _add_methods(command)
    _add_report(command)
    measuring, settings, files = _add_comparison(command, budget="10min")
    text = """groups of the objects: a file with one per line, or with --id a table of ids and
groups; or one NAME=FILE per view for unpaired views. All objects of a group, such as captions of
one image, are in the same part of a split (default: objects with equal rows are a group)"""
    add_option(measuring, "--groups", text, "[NAME=]FILE", **_REPEATED)
    text = """word vectors of the labels, for wmap@K; methods then learn from their sums. One row
per label column, or a .txt or .vec file with a label and its numbers on each line"""
    add_option(settings, "--label-vectors", text, "FILE")
    add_option(files, "--ids", f"names of the objects for the report: {_IDS}", "FILE")
    add_reading(command, files)


def add_to_fit(command: ArgumentParser) -> None:
    """Add the options of `mvcca fit`."""
    _add_inputs(command)
    text = "name of the method, see `mvcca methods`"
    add_option(command, "--method", text, "NAME", values.method, required=True)
    text = "model file to write, such as model.mvcca"
    add_option(command, "-o --output", text, "MODEL", required=True)
    settings = command.add_argument_group(_SETTINGS)
    text = """parameter of the method, such as n_components=64, reg=1e-3 or
reg='{"image": 0.1, "text": 0}' (default: chosen by folds where the method can do
so, otherwise as in the library; networks: see below)"""
    add_option(
        settings, "--param", text, "NAME=VALUE", values.parameter, dest="params", **_REPEATED
    )
    _add_missing(settings, "objects")
    tuning = settings.add_mutually_exclusive_group()
    text = """what the chosen settings find best among held-out rows: the same object, items of
the same class (needs --labels), or correlation (default: class if the method
learns from labels, otherwise object)"""
    goals = ("object", "class", "correlation")
    add_option(tuning, "--goal", text, choices=goals, dest="cv_goal")
    text = "choose no settings: parameters that are not given are as in the library"
    tuning.add_argument("--no-tune", action="store_false", dest="tune", help=text)
    add_reading(command)
    large = command.add_argument_group("large data")
    _add_block_rows(large)
    add_option(large, "--resume", "resume an interrupted fit from MODEL.partial/")
    where = large.add_mutually_exclusive_group()
    text = "distribute the rows over N single-threaded processes (needs mvcca[distributed])"
    add_option(where, "--workers", text, "N", values.positive_int)
    text = """distribute the rows over the workers of a Dask scheduler, such as tcp://host:8786;
the workers must see the files under the same paths"""
    add_option(where, "--scheduler", text, "ADDRESS")
    _add_device(where)
    _add_texts(command)
    _add_networks(command)


def add_to_transform(command: ArgumentParser) -> None:
    """Add the options of `mvcca transform`."""
    _add_model(command, "`mvcca fit`, `mvcca align` or `mvcca migrate`")
    text = "rows to project, of a fitted view, or their confounds; may be repeated"
    _add_files(command, "--view", text, "views")
    add_id(command, "column that identifies the rows, which is written beside their scores")
    text = """scores to write, with ids if files have them: .parquet, .npz, .csv or .arrow, or
without, .npy; with several views a name that
contains {view}, such as scores-{view}.npy"""
    add_option(command, "-o --output", text, "FILE", required=True)
    vectors = command.add_argument_group("vectors for a vector store")
    text = """write vectors instead of scores: their inner product, in any vector store, ranks as
mvcca search does; of queries or of the rows to be searched"""
    add_option(vectors, "--vectors", text, choices=("query", "gallery"), dest="role")
    _add_weighting(vectors)
    add_parameters(command, vectors, VECTORS, left=NO_OPTIONS[VECTORS])
    files = command.add_argument_group(_FILES)
    text = f"ids of the rows to write beside the scores, if no column has them: {_IDS}"
    add_option(files, "--ids", text, "FILE")
    add_reading(command, files)
    _add_block_rows(files)


def add_to_search(command: ArgumentParser) -> None:
    """Add the options of `mvcca search`."""
    _add_model(command, "`mvcca fit` or `mvcca align`")
    text = "rows to search, of a fitted view, or their confounds; may be repeated"
    _add_files(command, "--gallery", text, "galleries")
    text = "queries; may be repeated to query by several views, or to give confounds"
    _add_files(command, "--query", text, "queries")
    text = "number of items to find for each query"
    add_option(command, "-k", text, "K", values.positive_int, default=10)
    text = """column that identifies the rows of galleries and queries; hits then name queries and
items by it, not by number"""
    add_id(command, text)
    text = "hits to write, see below (default: .csv on standard output)"
    add_option(command, "-o --output", text, "FILE")
    ranking = command.add_argument_group("ranking")
    text = """search several galleries as one: row i of each shows the same item, and its
projections are added"""
    add_option(ranking, "--joint", text)
    add_parameters(command, ranking, INDEX, "similarity")
    _add_weighting(ranking)
    add_parameters(command, ranking, INDEX, "hubness")
    text = "training rows to compare with, of the views of queries and galleries; may be repeated"
    _add_files(ranking, "--bank", text, "bank", required=False)
    add_parameters(command, ranking, INDEX, left=NO_OPTIONS[INDEX])
    _add_reading(command)


def add_to_migrate(command: ArgumentParser) -> None:
    """Add the options of `mvcca migrate`."""
    command.add_argument("old", metavar="OLD", help="vectors of the old model, of all items")
    command.add_argument("new", metavar="NEW", help="vectors of the new model, of the sample")
    text = f"""rows of OLD that the rows of NEW belong to, in any format of a matrix; {notes.ROWS}.
May be left out if both files have the same number of rows, in the same order"""
    matched = command.add_mutually_exclusive_group()
    add_option(matched, "--sample", text, "FILE")
    add_id(matched, "column that identifies the items in both files; rows are matched by it")
    add_option(
        command,
        "-o --output",
        "mapped vectors of OLD to write, with their ids: .parquet, .npz, .csv, .arrow, or without, "
        ".npy; or the map itself, .mvcca",
        "FILE",
        required=True,
    )
    add_parameters(command, command, MIGRATE, "direction")
    _add_report(command, ".html; a page with what the map finds and keeps, and the learning curve")
    settings = command.add_argument_group("settings of the map")
    add_parameters(command, settings, MIGRATE, left=NO_OPTIONS[MIGRATE])
    add_option(settings, "--force", "write even if the map is no better than one of permuted pairs")
    _add_reading(command)


def add_to_test(command: ArgumentParser) -> None:
    """Add the options of `mvcca test`."""
    text = "{}, one row per subject: .csv or .tsv with a header, or any file with a matrix"
    command.add_argument("first", metavar="X", help=text.format("one set of variables"))
    command.add_argument("second", metavar="Y", help=text.format("the other set"))
    text = """column that identifies the subjects in every file; rows are matched by it (default:
files have the same subjects in the same order)"""
    add_id(command, text)
    text = """variables to remove from both sets, such as age and site; columns of text become
indicators"""
    add_option(command, "--confounds", text, "FILE")
    text = "variables to remove from Y only; --confounds are then removed from X only"
    add_option(command, "--confounds-y", text, "FILE")
    text = """families, sites or other groups of subjects that are not independent: a column of the
confounds, or a file with one per line, or with --id a table of ids and groups. Permutations
exchange whole groups of the same size; given twice, such as site and then family, whole families
within their site"""
    add_option(command, "--groups", text, "COLUMN|FILE", action="append")
    _add_report(command, ".html")
    settings = command.add_argument_group("settings of the test")
    add_parameters(command, settings, STUDY, "within", "n_components")
    _add_missing(settings, "subjects")
    add_parameters(command, settings, STUDY, left=NO_OPTIONS[STUDY])
    add_reading(command)


def add_to_align(command: ArgumentParser) -> None:
    """Add the options of `mvcca align`."""
    command.add_argument("first", metavar="X", help="vectors of one set")
    command.add_argument("second", metavar="Y", help="vectors of the other set, of other items")
    text = f"""items of X and of Y that are known to belong together, in two columns of numbers
({notes.ROWS}), or of their ids, as in a dictionary of words (default: none is known)"""
    add_option(command, "--pairs", text, "FILE")
    add_id(command, "column that identifies the items of X and of Y")
    add_option(
        command,
        "-o --output",
        "model to write, .mvcca, of the views x and y",
        "FILE",
        required=True,
    )
    settings = command.add_argument_group("settings of the alignment")
    add_parameters(command, settings, ALIGN, left=NO_OPTIONS[ALIGN])
    add_option(settings, "--force", "write even if the alignment failed")
    _add_reading(command)


def add_to_similarity(command: ArgumentParser) -> None:
    """Add the options of `mvcca similarity`."""
    text = "a file of one layer, .npy, with a row per object, or a folder of such files"
    command.add_argument("layers", metavar="LAYERS", nargs="+", help=text)
    text = "layers of another network for the same rows (default: each layer with each)"
    add_option(command, "--other", text, "LAYERS", nargs="+")
    add_parameters(command, command, REPRESENTATIONS, "measures", "reg")
    add_option(command, "--plot", "heat map of the first measure to write", "FILE")
    settings = command.add_argument_group("settings of the measures")
    text = "the measures as published, which grow with the width of layers"
    settings.add_argument("--raw", action="store_false", dest="calibrate", help=text)
    add_parameters(command, settings, REPRESENTATIONS)


def add_to_info(command: ArgumentParser) -> None:
    """Add the options of `mvcca info`."""
    _add_model(command, "`mvcca fit`, `mvcca align` or `mvcca migrate`")


def add_to_completion(command: ArgumentParser) -> None:
    """Add the options of `mvcca completion`."""
    command.add_argument("shell", choices=("bash", "zsh", "fish"), help="the shell to complete in")


def add_to_all(command: ArgumentParser) -> None:
    """Add the options that every command has."""
    output = command.add_argument_group("output")
    add_option(output, "--json", "print results as JSON")
    add_option(output, "-q --quiet", "print results only: no progress, no notes")
    add_option(output, "-h --help", "show this help and exit", action="help")


def network_parameters(options: Namespace) -> dict[str, Any]:
    """Parameters of networks that the user set."""
    given = {n: value for n in NETWORK_FLAGS if (value := getattr(options, n)) is not None}
    if "patience" in given:
        given.setdefault("validation_fraction", _VALIDATION_FRACTION)
    return given


def _add_inputs(command: ArgumentParser) -> None:
    _add_files(command, "--view", "a view with one row per object; give at least two", "views")
    text = """column that identifies the objects in all files, labels included: rows are matched by
it, and an object may be missing from some views"""
    add_id(command, text)
    text = "with --id, keep only the objects that are in all views, as some methods need"
    add_option(command, "--complete", text)
    text = "labels of the objects; or one NAME=FILE per view for unpaired views"
    add_option(command, "--labels", text, "[NAME=]FILE", **_REPEATED)


def _add_files(group: Any, flag: str, text: str, dest: str, required: bool = True) -> None:
    more = {"dest": dest, "required": required, **_REPEATED}
    add_option(group, flag, text, "NAME=FILE", values.named_file, **more)


def _add_reading(command: ArgumentParser) -> None:
    _add_block_rows(add_reading(command))


def _add_model(command: ArgumentParser, written_by: str) -> None:
    command.add_argument("model", metavar="MODEL", help=f"file written by {written_by}")


def _add_weighting(group: Any) -> None:
    text = """weighting of components by their correlations: likelihood, profile-likelihood,
likelihood-cosine, correlation, correlation^P, or none; with +csls at the end, of a tuned model,
hubs are corrected (default: as tuned, or that of the method)"""
    add_option(group, "--weighting", text, "NAME", values.weighting)
    group.set_defaults(weighting="auto")


def _add_block_rows(group: Any) -> None:
    text = "rows per block in memory (default: about 64 MiB)"
    add_option(group, "--block-rows", text, "N", values.positive_int)


def _add_device(group: Any) -> None:
    text = """compute on cuda, cuda:1, cupy:0, torch:cuda:0 (needs CuPy or torch), mps or cpu
(default: cpu; networks: a GPU if torch finds one)"""
    add_option(group, "--device", text, "NAME")


def _add_methods(command: ArgumentParser) -> None:
    methods = command.add_mutually_exclusive_group()
    text = f"""methods to compare, separated by commas; see `mvcca methods`. 'all' selects those
without networks, 'deep' those with networks (default: {", ".join(GROUPS["default"])},
without those that do not apply to the data)"""
    add_option(methods, "--methods", text, "NAME,...", values.methods)
    text = "compare cca, nkcca and all methods with networks (about a minute on digits)"
    methods.add_argument(
        "--deep", action="store_const", const=DEFAULT_DEEP, dest="methods", help=text
    )
    command.set_defaults(methods=("default",))


def _add_report(
    command: ArgumentParser,
    endings: str = ".html (with figures if matplotlib is installed), .md, .csv or .json",
    default: str | None = None,
) -> None:
    add_option(
        command, "--report", f"report to write, by its ending: {endings}", "FILE", default=default
    )


def _add_comparison(command: ArgumentParser, budget: str) -> tuple[Any, Any, Any]:
    """Add the options of a comparison, and return the groups that a command adds others to."""
    measuring, settings, files, running = map(
        command.add_argument_group,
        ("what is measured", _SETTINGS, _FILES, "time, device and randomness"),
    )
    add_option(measuring, "--measures", notes.MEASURES, "NAME,...", values.names)
    add_parameters(command, measuring, COMPARE, "gallery_size", "relevance", "directions")
    text = "also print the data, chosen settings, times, memory and definitions"
    add_option(measuring, "--verbose", text)
    add_option(measuring, "--by-direction", "like --verbose, with every ordered pair of views")
    text = "number of folds, or fraction of objects in a single held-out part"
    add_option(measuring, "--cv", text, "N", values.folds, default=5)
    text = "choose no settings: compare methods at the values below and the library's defaults"
    settings.add_argument("--no-tune", action="store_false", dest="tune", help=text)
    text = """dimension of the shared space (default: chosen by folds; 10, in the demo 9, for
methods that are not tuned)"""
    add_option(settings, "--n-components", text, "N", values.positive_int)
    text = """ridge in units of each view's mean variance, 'auto' or 'oas' (default: chosen by
folds; 0.1 for methods that are not tuned; networks: see below); of several values, each
method uses the best one on the folds"""
    add_option(settings, "--reg", text, "REG", values.reg, nargs="+")
    text = """parameter of the methods that have it, such as n_neighbors=20; may be repeated. Of
several values, as in n_neighbors=5,20,80, each method uses the best, as with --reg"""
    add_option(
        settings, "--param", text, "NAME=VALUE", values.parameter_values, dest="params", **_REPEATED
    )
    text = "similarity of label vectors (default: sqexp)"
    similarities = ("sqexp", "exp", "cosine", "equal")
    add_option(settings, "--label-similarity", text, choices=similarities)
    add_option(settings, "--sigma", "its bandwidth (default: 1)", "S", values.positive)
    text = """time for all methods, such as 30s or 2h, or none for any; what is measured on two
folds by then is printed, and other methods are left out, with the reason"""
    add_option(running, "--budget", text, "TIME", str.lower, default=budget)
    add_parameters(command, running, COMPARE, "random_state", "n_jobs")
    of_files = {"groups", "label_vectors"}  # which the demo has not
    add_parameters(command, settings, COMPARE, left={*NO_OPTIONS[COMPARE], *of_files})
    _add_device(running)
    _add_networks(command)
    return measuring, settings, files


def _add_missing(group: Any, whose: str) -> None:
    text = f"""what to do about missing values: refuse them, leave out the {whose} that miss one,
fill in the mean of the column (in categories of confounds, the level missing), or learn from
the values that are there, by pairs of variables or by maximum likelihood"""
    choices = ("error", "drop", "mean", "pairwise", "em")
    add_option(group, "--missing", text, choices=choices, default="error")


def _add_texts(command: ArgumentParser) -> None:
    group = command.add_argument_group("texts", notes.TEXTS)
    text = f"leave out words that occur less often (default: {MIN_COUNT})"
    add_option(group, "--min-count", text, "N", values.positive_int)
    text = f"""number of features of texts that are not sequences of words (default:
{TEXT_COMPONENTS})"""
    add_option(group, "--text-components", text, "N", values.positive_int)


def _add_networks(command: ArgumentParser) -> None:
    group = command.add_argument_group("networks", notes.NETWORKS)

    def add(parameter: str, text: str, metavar: str, kind: Any = None) -> None:
        add_option(group, NETWORK_FLAGS[parameter], text, metavar, kind, dest=parameter)

    add("max_epochs", "maximum number of epochs", "N", values.positive_int)
    add("batch_size", "rows per batch", "N", values.positive_int)
    text = "units of the hidden layers of every view, such as 800,800"
    add("hidden_layer_sizes", text, "N,...", values.sizes)
    text = "fraction of the rows for validation; the weights of the best epoch are kept"
    add("validation_fraction", text, "F", values.fraction)
    text = """stop after N epochs without improvement on the validation rows (a tenth of the
rows unless --validation-fraction is given)"""
    add("patience", text, "N", values.positive_int)
