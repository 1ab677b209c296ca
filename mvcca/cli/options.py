"""Options of all commands, with their help texts.

Only names and numbers are validated here. Importing this module loads the standard library only.
"""

from __future__ import annotations

from argparse import ArgumentParser, BooleanOptionalAction, Namespace
from collections.abc import Callable, Sequence
from typing import Any

from mvcca.cli import values
from mvcca.comparison.registry import DEFAULT_DEEP, GROUPS

_MEASURES_HELP = """retrieval measures, separated by commas; the first one by pairs determines the
best method for the same object, the first one by labels the best for the same class
(default: map@50,r@1,r@10,mrr):
  map, map@K      mean average precision of the whole ranking or of its first K items
  p@K, r@K        precision; share of queries with a right item among the first K
  mrr             mean reciprocal rank of the first right item
  mr, mean_rank   median and mean rank of the first right item
  ndcg, ndcg@K    normalized discounted gain; the gain is the number of shared labels
  recall@K        share of the right items among the first K
  wmap@K          weighted mean average precision, with --label-vectors
Variants such as map@50:cutoff are described in mvcca.evaluate_retrieval"""

FILES_NOTE = """files:
  .npy             a dense matrix with one row per object
  .npz             one dense array, file.npz:KEY for one of several, or scipy.sparse.save_npz
  .h5, .zarr       one matrix, or file.h5:KEY for one of several (need h5py, zarr)
  .mat             one MATLAB matrix, or file.mat:NAME for one of several (7.3 needs h5py)
  .parquet, .arrow columns of numbers, or of lists of equal length; file.arrow:NAME for one
                   column (need pyarrow)
  .csv, .tsv       numbers, optionally with a header line of names or of pandas' 0, 1, 2, ..., which
                   is reported when it is taken for one; see --header
  .txt             texts in UTF-8, one per line; as labels: one line per object, separated by commas
Labels are one class per row, an indicator matrix of 0 and 1 (dense or sparse), real label vectors,
or the label sets of a .txt file. Column names of tables are stored in the model; rows to
project must have the same columns in the same order."""

_BLOCKS_NOTE = """Files in .npy, .h5, .zarr, .mat (7.3), .parquet, .arrow and sparse (csr) .npz
format are read in blocks of rows, other files as a whole."""

TRANSFORM_NOTE = f"""{_BLOCKS_NOTE}
Scores are written in blocks, too; the output file appears when it is complete."""

SEARCH_NOTE = f"""{_BLOCKS_NOTE}
Projected galleries are kept in memory. Every row of a gallery is one item, identified by its row
number, from 0; with --joint, rows of several galleries with the same number are one item. Queries
in several views are paired: their projections are added.
--bank takes training rows, not the queries: of the query views, and for csls and mutual of the
gallery views, too.

Output, by file extension:
  .csv, .parquet,  one line per hit: query, rank (from 1), view (if several), item, score
  .arrow
  .npz             items and scores, (queries, k), and views (if several)
  .npy             items only
  .trec            a run file for TREC's tools: query Q0 item rank score mvcca; items of several
                   galleries are named view:item, and equal scores are lowered to keep the order
Scores are larger for better items; distances of --similarity euclidean are negative."""

MIGRATE_NOTE = f"""A map is fitted to the sample, whose items both models embedded. By default it is
applied to every row of OLD, so that queries of the new model find rows that only the old one has
seen. With --direction queries nothing stored changes: -o MAP.mvcca is the map of queries, for
mvcca.interop.migration.Migration.load(...).map_queries.

The first figure is the share of vectors of NEW that find their own row first among all rows of OLD,
by cosine, with two standard errors. Each searches by a map without its own pair: leave-one-out for
affine items and cca queries, else five folds. Of more than 100,000 rows, as many are drawn. The
second figure is the share of a vector's nearest rows that stay nearest among a fifth of the sample,
beside the share that the old model has by itself. Of the nearest rows among all, fewer stay.

If no more vectors find their own row first than by a map of permuted pairs, nothing is written
without --force, and the exit code is 1.

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

_MIN_COUNT, _TEXT_COMPONENTS = 2, 100  # the defaults of `mvcca.comparison.texts`

_TEXTS_NOTE = """\
Views in .txt files. msds has a network of words and reads them as sequences of words; all other
methods take TF-IDF features reduced by truncated SVD. The vocabulary is that of the texts given
here, and is part of the model: other commands take the same kind of file."""

_VALIDATION_FRACTION = 0.1  # if only patience is given

_NETWORKS_NOTE = """\
The defaults depend on the number of training rows. Up to 10,000 rows: hidden layers of 256,256,
batches of 128 and 60 epochs; the scaling of ds-dcca starts at one, and the decorrelation of
soft-cca is 1. More rows, as published: hidden layers of 800,800, batches of 750 and 100 epochs.
Batches have at least 8 rows per component, and the ds- methods warm up for half of the epochs.
corrnet, devise and msds use 100 epochs, the autoencoders and ccl 200. The ridge of networks is
1e-4. Features are standardized."""


def add_to_demo(command: ArgumentParser) -> None:
    """Add the options of `mvcca demo`."""
    text = "parts of an image as views (default: halves, then quadrants; only halves with networks)"
    _choose(command, "--parts", ("halves", "quadrants"), text)
    text = """labels to learn from: the digit, or the segments of a seven-segment display that show
it (default: digit)"""
    _choose(command, "--labels", ("digit", "segments"), text, default="digit")
    _add_comparison(command, "mvcca-demo.html")


def add_to_compare(command: ArgumentParser) -> None:
    """Add the options of `mvcca compare`."""
    _add_inputs(command)
    text = """word vectors of the labels, for wmap@K; methods then learn from their sums. One row
per label column, or a .txt or .vec file with a label and its numbers on each line"""
    _add(command, "--label-vectors", text, metavar="FILE")
    text = "names of the objects for the report: .npy, a column in .csv, or text with one per line"
    _add(command, "--ids", text, metavar="FILE")
    text = """groups of the objects, .npy or text with one per line; or one NAME=FILE per view for
unpaired views. All objects of a group, such as captions of one image, are in the same part of a
split (default: objects with equal rows are a group)"""
    _add_repeated(command, "--groups", text, None, "[NAME=]FILE")
    _add_header(command)
    _add_comparison(command)


def add_to_fit(command: ArgumentParser) -> None:
    """Add the options of `mvcca fit`."""
    _add_inputs(command)
    text = "name of the method, see `mvcca methods`"
    _add(command, "--method", text, values.method, "NAME", required=True)
    text = """parameter of the method, such as n_components=64, reg=1e-3 or
reg='{"image": 0.1, "text": 0}' (default: chosen by folds where the method can do
so, otherwise as in the library; networks: see below)"""
    _add_repeated(command, "--param", text, values.parameter, "NAME=VALUE", dest="params")
    tuning = command.add_mutually_exclusive_group()
    text = """what the chosen settings find best among held-out rows: the same object, items of
the same class (needs --labels), or correlation (default: class if the method
learns from labels, otherwise object)"""
    _choose(tuning, "--goal", ("object", "class", "correlation"), text)
    text = "choose no settings: parameters that are not given are as in the library"
    _flag(tuning, "--no-tune", text)
    _add_header(command)
    _add_output(command, "model file to write, such as model.mvcca", "MODEL")
    _flag(command, "--resume", "resume an interrupted fit from MODEL.partial/")
    where = command.add_mutually_exclusive_group()
    text = "distribute the rows over N single-threaded processes (needs mvcca[distributed])"
    _add(where, "--workers", text, values.positive_int)
    text = """distribute the rows over the workers of a Dask scheduler, such as tcp://host:8786;
the workers must see the files under the same paths"""
    _add(where, "--scheduler", text, metavar="ADDRESS")
    text = """compute on a GPU: cuda, cuda:1, cupy:0 or torch:cuda:0 (needs CuPy or torch);
networks train on auto, cpu, cuda, cuda:1 or mps (default: auto)"""
    _add(where, "--device", text, metavar="NAME")
    _add_block_rows(command)
    _add_texts(command)
    _add_networks(command, device=False)


def add_to_transform(command: ArgumentParser) -> None:
    """Add the options of `mvcca transform`."""
    _add_model(command, "fit", "align", "migrate")
    _add_files(command, "--view", "rows to project, of a fitted view; may be repeated", "views")
    text = """scores to write, .npy, .parquet, .arrow or .csv; with several views a name that
contains {view}, such as scores-{view}.npy"""
    _add_output(command, text)
    text = """write vectors instead of scores: their inner product, in any vector store, ranks as
mvcca search does; of queries or of the rows to be searched"""
    _choose(command, "--vectors", ("query", "gallery"), text)
    _add_weighting(command)
    text = "view of the queries, which a gallery needs to know if the model corrects for hubs"
    _add(command, "--query-view", text, metavar="NAME")
    text = "view that the queries search, which the likelihood needs to know"
    _add(command, "--target", text, metavar="NAME")
    text = """ids of the rows to write beside the scores: .npy, a column in .csv, or text with one
per line"""
    _add(command, "--ids", text, metavar="FILE")
    _add_header(command)
    _add_block_rows(command)


def add_to_search(command: ArgumentParser) -> None:
    """Add the options of `mvcca search`."""
    _add_model(command, "fit", "align")
    text = "rows to search, of a fitted view; may be repeated"
    _add_files(command, "--gallery", text, "galleries")
    text = """search several galleries as one: row i of each shows the same item, and its
projections are added"""
    _flag(command, "--joint", text)
    _add_files(command, "--query", "queries; may be repeated to query by several views", "queries")
    _add(command, "-k", "number of items to find for each query", values.positive_int, "K", 10)
    text = "similarity of projected rows (default: that of the method)"
    _choose(command, "--similarity", ("cosine", "euclidean", "inner"), text)
    _add_weighting(command)
    text = """correct for items that are near to many queries, with the rows of --bank (default: as
the model was tuned)"""
    _choose(command, "--hubness", ("csls", "inverted_softmax", "qb_norm", "mutual"), text)
    text = "training rows to compare with, of the views of queries and galleries; may be repeated"
    _add_files(command, "--bank", text, "banks", required=False)
    text = """column that identifies the rows in .csv and .tsv files of galleries and queries; hits
then name queries and items by it, not by number"""
    _add(command, "--id", text, metavar="COLUMN")
    _add_header(command)
    text = "hits to write, see below (default: .csv on standard output)"
    _add_output(command, text, required=False)
    _add_block_rows(command)


def add_to_migrate(command: ArgumentParser) -> None:
    """Add the options of `mvcca migrate`."""
    command.add_argument("old", metavar="OLD", help="vectors of the old model, of all items")
    command.add_argument("new", metavar="NEW", help="vectors of the new model, of the sample")
    text = """rows of OLD that the rows of NEW belong to, numbered from 0, in any format of a
matrix; may be left out if both files have the same number of rows, in the same order"""
    _add(command, "--sample", text, metavar="FILE")
    _add_header(command)
    _add_output(command, "mapped vectors of OLD to write, .npy, or the map itself, .mvcca")
    text = """what is mapped: the stored rows of OLD, new queries for an index of OLD that stays as
it is, or both into a shared space (default: items)"""
    _choose(command, "--direction", ("items", "queries", "both"), text, default="items")
    text = """any affine map (items), one per cluster of rows where that helps (local; items), the
bilinear form of CCA (queries, both), or only rotations (items, queries; default: affine for items,
cca otherwise)"""
    _choose(command, "--method", ("affine", "local", "cca", "procrustes"), text)
    text = """ridge in units of the mean variance; of several, the one that maps left-out rows best
(default: 18 values from 1e-4 to 30, or for cca 6 from 0.03 to 10)"""
    _add(command, "--reg", text, values.non_negative, "REG", nargs="+")
    text = "also measure maps of a half, a quarter and an eighth of the sample"
    _flag(command, "--learning-curve", text)
    text = """scale the vectors to length 1 before writing (default: if those of the space
that they are mapped to have length 1)"""
    command.add_argument("--normalize", action=BooleanOptionalAction, help=text)
    _flag(command, "--force", "write even if the map is no better than one of permuted pairs")
    _add(command, "--seed", "random seed", values.seed, "N", 0)
    _add_block_rows(command)


def add_to_test(command: ArgumentParser) -> None:
    """Add the options of `mvcca test`."""
    text = "{}, one row per subject: .csv or .tsv with a header, or any file with a matrix"
    command.add_argument("first", metavar="X", help=text.format("one set of variables"))
    command.add_argument("second", metavar="Y", help=text.format("the other set"))
    text = """variables to remove from both sets, such as age and site; columns of text become
indicators"""
    _add(command, "--confounds", text, metavar="FILE")
    text = """families, sites or other groups of subjects that are not independent: a column of the
confounds, or a file with one per line. Permutations exchange whole groups of the same size"""
    _add(command, "--groups", text, metavar="COLUMN|FILE")
    _flag(command, "--within", "permute subjects within their groups, not whole groups")
    text = """column that identifies the subjects in every file; rows are matched by it (default:
files have the same subjects in the same order)"""
    _add(command, "--ids", text, metavar="COLUMN")
    text = """principal components of each set (default: as many as explain 90 %% of its variance,
at most a tenth of the subjects)"""
    _add(command, "--components", text, values.positive_int)
    text = """what to do with missing values of the two sets: refuse them, or learn from the values
that are there, by pairs of variables or by maximum likelihood (EM) (default: error)"""
    _choose(command, "--missing", ("error", "pairwise", "em"), text, default="error")
    text = "transform variables by their ranks to normal distributions (default: yes)"
    command.add_argument("--rank", action=BooleanOptionalAction, default=True, help=text)
    text = "remove squares of the confounds, too (default: yes)"
    command.add_argument("--squares", action=BooleanOptionalAction, default=True, help=text)
    _add(command, "--permutations", "number of permutations", values.positive_int, default=999)
    _add(command, "--level", "coverage of the intervals", values.fraction, "F", 0.9)
    _add(command, "--seed", "random seed", values.seed, default=0)
    _add(command, "--jobs", "number of processes (default: 1)", values.positive_int)
    _add(command, "--report", "report to write, .html", metavar="FILE")


def add_to_align(command: ArgumentParser) -> None:
    """Add the options of `mvcca align`."""
    command.add_argument("first", metavar="X", help="vectors of one set")
    command.add_argument("second", metavar="Y", help="vectors of the other set, of other items")
    text = """rows of X and of Y that are known to belong together, two columns numbered from 0
(default: none is known)"""
    _add(command, "--pairs", text, metavar="FILE")
    _add_header(command)
    _add_output(command, "model to write, .mvcca, of the views x and y")
    text = "CCA, or only rotations (default: cca)"
    _choose(command, "--method", ("cca", "procrustes"), text, default="cca")
    text = """use pseudo-pairs if folds of the known pairs say that they help, or in any case
(default: auto)"""
    _choose(command, "--pseudo-pairs", ("auto", "always"), text, default="auto")
    _add(command, "--reg", "ridge in units of the mean variance", values.positive, "REG", 3.0)
    _flag(command, "--force", "write even if the alignment failed")
    _add(command, "--seed", "random seed", values.seed, "N", 0)
    _add_block_rows(command)


ALIGN_NOTE = """Rows that are each other's nearest under a model become pseudo-pairs, to which the
next model is fitted. With at least 10 known pairs, each is left out once to measure how well rows
match. Without, the alignment is started again from some of its own pairs; if it does not come back
to the same matches it has failed, and nothing is written without --force."""


def add_to_similarity(command: ArgumentParser) -> None:
    """Add the options of `mvcca similarity`."""
    text = "a file of one layer, .npy, with a row per object, or a folder of such files"
    command.add_argument("layers", metavar="LAYERS", nargs="+", help=text)
    text = "layers of another network for the same rows (default: each layer with each)"
    _add(command, "--other", text, metavar="LAYERS", nargs="+")
    text = "measures, separated by commas"
    _add(command, "--measures", text, values.names, default="cka_unbiased")
    text = """ridge of the two mean correlations, in units of a layer's mean variance; layers wider
than there are objects need one"""
    _add(command, "--reg", text, values.non_negative, "REG", 0.0)
    _flag(command, "--raw", "the measures as published, which grow with the width of layers")
    text = "coverage of intervals, from ten groups of rows (default: no intervals)"
    _add(command, "--level", text, values.fraction, "F")
    _add(command, "--plot", "heat map of the first measure to write", metavar="FILE")
    _add(command, "--seed", "random seed", values.seed, "N", 0)


SIMILARITY_NOTE = """Measures: cka_unbiased, cka, procrustes, predictivity, mean_correlation,
mean_squared_correlation, svcca, pwcca, mutual_knn. Each is calibrated: unrelated layers have 0 on
average, whatever their width, and equal ones 1. z (with --json) tells how many standard deviations
a measure lies above that of unrelated layers."""


def add_to_info(command: ArgumentParser) -> None:
    """Add the options of `mvcca info`."""
    _add_model(command, "fit", "align", "migrate")


def add_to_methods(_: ArgumentParser) -> None:
    """Add no options: `mvcca methods` has only those of all commands."""


def add_to_completion(command: ArgumentParser) -> None:
    """Add the options of `mvcca completion`."""
    command.add_argument("shell", choices=("bash", "zsh"), help="the shell to complete in")


TEST_NOTE = """The first table shows, for each component, its correlation in these subjects, the
95th percentile of shuffled pairs, the p-value of a permutation test (corrected for the number of
components), an estimate of the correlation in the population with an interval, and the correlation
in subjects that were left out of all steps. Variables are listed by their loadings, the
correlations with their own set's variate."""


def add_to_all(command: ArgumentParser) -> None:
    """Add the options that every command has."""
    _flag(command, "--json", "print results as JSON")
    text = "print results only: no progress, no notes"
    command.add_argument("-q", "--quiet", action="store_true", help=text)


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
    command: ArgumentParser,
    flag: str,
    text: str,
    kind: Callable[[str], Any] | None,
    metavar: str,
    **more: Any,
) -> None:
    _add(command, flag, text, kind, metavar, action="append", **more)
    command.set_defaults(**{more.get("dest", flag.strip("-")): []})


def _choose(command: Any, flag: str, names: Sequence[str], text: str, **more: Any) -> None:
    command.add_argument(flag, choices=names, help=text, **more)


def _flag(command: Any, flag: str, text: str) -> None:
    command.add_argument(flag, action="store_true", help=text)


def _add_inputs(command: ArgumentParser) -> None:
    _add_files(command, "--view", "a view with one row per object; give at least two", "views")
    text = "labels of the objects; or one NAME=FILE per view for unpaired views"
    _add_repeated(command, "--labels", text, None, "[NAME=]FILE")
    text = """column that identifies the objects in all .csv and .tsv files, labels included: rows
are matched by it, and an object may be missing from some views"""
    _add(command, "--id", text, metavar="COLUMN")


def _add_files(
    command: ArgumentParser, flag: str, text: str, dest: str, required: bool = True
) -> None:
    more = {"dest": dest, "required": required}
    _add_repeated(command, flag, text, values.named_file, "NAME=FILE", **more)


def _add_header(command: ArgumentParser) -> None:
    text = """whether the first line of .csv and .tsv files is a header (default: words above
numbers are, and the 0, 1, 2, ... of pandas)"""
    _choose(command, "--header", ("yes", "no"), text)


def _add_model(command: ArgumentParser, *written_by: str) -> None:
    *others, last = (f"`mvcca {name}`" for name in written_by)
    text = f"file written by {', '.join(others)} or {last}"
    command.add_argument("model", metavar="MODEL", help=text)


def _add_output(
    command: ArgumentParser, text: str, metavar: str = "FILE", required: bool = True
) -> None:
    command.add_argument("-o", "--output", required=required, metavar=metavar, help=text)


def _add_weighting(command: ArgumentParser) -> None:
    text = """weighting of components by their correlations: likelihood, profile-likelihood,
likelihood-cosine, correlation, correlation^P, or none; with +csls at the end, of a tuned model,
hubs are corrected (default: as tuned, or that of the method)"""
    command.add_argument(
        "--weighting", type=values.weighting, metavar="NAME", default="auto", help=text
    )


def _add_block_rows(command: ArgumentParser) -> None:
    text = "rows per block in memory (default: about 64 MiB)"
    _add(command, "--block-rows", text, values.positive_int)


def _add_comparison(command: ArgumentParser, report: str | None = None) -> None:
    methods = command.add_mutually_exclusive_group()
    text = f"""methods to compare, separated by commas; see `mvcca methods`. 'all' selects those
without networks, 'deep' those with networks (default: {",".join(GROUPS["default"])},
without those that do not apply to the data)"""
    _add(methods, "--methods", text, values.methods, "NAME,...")
    text = "compare cca, nkcca and all methods with networks (about a minute on digits)"
    methods.add_argument(
        "--deep", action="store_const", const=DEFAULT_DEEP, dest="methods", help=text
    )
    text = "number of folds, or fraction of objects in a single held-out part"
    _add(command, "--cv", text, values.folds, default=5)
    text = """dimension of the shared space (default: chosen by folds; 10, in the demo 9, for
methods that are not tuned)"""
    _add(command, "--n-components", text, values.positive_int)
    text = """ridge in units of each view's mean variance, 'auto' or 'oas' (default: chosen by
folds; 0.1 for methods that are not tuned; networks: see below); of several values, each
method uses the best by cross-validation within the training part of each fold"""
    _add(command, "--reg", text, values.reg, "REG", nargs="+")
    text = """parameter of the methods that have it, such as n_neighbors=20; may be repeated. Of
several values, as in n_neighbors=5,20,80, each method uses the best, as with --reg"""
    _add_repeated(command, "--param", text, values.parameter_values, "NAME=VALUE", dest="params")
    text = "choose no settings: compare methods at the values above and the library's defaults"
    _flag(command, "--no-tune", text)
    text = """time for all methods, such as 30s or 2h, or none for any: with little of it, costly
methods are tuned coarsely, not tuned or left out, which is said"""
    _add(command, "--budget", text, metavar="TIME", default="20s" if report else "10min")
    text = "similarity of label vectors (default: sqexp)"
    _choose(command, "--label-similarity", ("sqexp", "exp", "cosine", "equal"), text)
    _add(command, "--sigma", "its bandwidth (default: 1)", values.positive, "S")
    _add(command, "--measures", _MEASURES_HELP.replace("%", "%%"), values.names, "NAME,...")
    command.set_defaults(methods=("default",), measures=("map@50", "r@1", "r@10", "mrr"))
    text = """right items show the same object, or share a label with the query (default: labels
for map and p, pairs for other measures, if available)"""
    _choose(command, "--relevance", ("pairs", "labels"), text)
    text = "queries for other views, for the view itself, or both (default: cross)"
    _choose(command, "--directions", ("cross", "within", "all"), text, default="cross")
    _flag(command, "--by-direction", "also print every ordered pair of views")
    _add(command, "--seed", "random seed", values.seed, default=0)
    text = """report to write, by its ending: .html (with figures if matplotlib is installed),
.md, .csv or .json"""
    _add(command, "--report", text, metavar="FILE", default=report)
    _add(command, "--jobs", "number of processes (default: 1)", values.positive_int)
    if report:
        text = "write no report"
        command.add_argument(
            "--no-report", action="store_const", const=None, dest="report", help=text
        )
    _add_networks(command)


def _add_texts(command: ArgumentParser) -> None:
    group = command.add_argument_group("texts", _TEXTS_NOTE)
    text = f"leave out words that occur less often (default: {_MIN_COUNT})"
    _add(group, "--min-count", text, values.positive_int)
    text = f"""number of features of texts that are not sequences of words (default:
{_TEXT_COMPONENTS})"""
    _add(group, "--text-components", text, values.positive_int)


def _add_networks(command: ArgumentParser, *, device: bool = True) -> None:
    """Add options of networks; without `device` if the command already has that option."""
    group = command.add_argument_group("networks", _NETWORKS_NOTE)

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
