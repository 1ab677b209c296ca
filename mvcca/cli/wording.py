"""Messages of the library in the words of the command line.

The library names what Python users type. `as_typed` is the one place that turns this into options,
for every error and warning that a command shows. Advice that has no option is left out.
"""

from __future__ import annotations

import re
from argparse import Action, ArgumentParser
from collections.abc import Collection

# Advice of the library, and what a reader of the command line can do instead.
_ADVICE = {
    r"Fill in missing values with mvcca\.PerView\(SimpleImputer\(\)\), leave out these rows, or "
    r"let CCA or MVCCA learn from the other values \(missing=\"em\"\)": (
        "Fill in missing values, or leave out these rows: `mvcca fit` and test do so with "
        "--missing mean or drop; with --missing em, cca and mvcca learn from the other values"
    ),
    r"with mvcca\.Views\(blocks, index=\.\.\.\)": "with --id COLUMN",
    r"(Fit|Select them:) views\[views\.seen\.all\(axis=1\)\]": (
        "Keep the objects of all views: --id COLUMN --complete"
    ),
    r", and paired objects with views\[views\.seen\.all\(axis=1\)\]": "",
    r"are paired with Views\(blocks, index\) or Views\.aligned": "are matched by --id COLUMN",
    r", as by PerView\(TruncatedSVD\(300\)\)": "",
    r"open_matrix\(path, key=\.\.\.\)": "FILE:NAME",
    r"make blocks smaller(:| with) mvcca\.config_context\(block_rows=\.\.\.\)": (
        "make blocks smaller with --block-rows"
    ),
    r"header=True or header=False": "--header yes or no",
    r", or budget=None,": ", or --budget none,",
    r"a comparison has them with tune=False": "a comparison has them with --no-tune",
    r"Pass X_val to fit": "Give more rows, or a larger --validation-fraction",
    r"monitor=\"valid_map\" needs labels: pass y to fit": (
        "--param monitor=valid_map needs labels: give --labels"
    ),
    r"needs labels: pass y to fit": "needs --labels",
    r"(\w+)\(confounds=('[^']*'|\"[^\"]*\")\)": r"--param confounds=\2",
    r"; or pass Views, a mapping or a list of views": "",
    r"needs a bank to compare with\. Pass bank=, training": "needs --bank, training",
    r"Expected only numbers, or a category type": "Expected only numbers",
    r"pass it as groups( in place of a confound)?": "give it by --groups",
    r"search a list of absolute ridges with FoldSearchCV or GridSearchCV": "give a number",
    r"pass it as target": "give it by --target",
    r"pass it as query": "give it by --query-view",
    r"within groups: pass groups": "within groups: give --groups",
    r"Pass labels\.": "Give --labels.",
    r"or all with target=None, without normalize": "or several without --joint",
    r"; or rank by weighting='profile-likelihood'": "; or give --weighting profile-likelihood",
}
_VALUE = r"\"[^\"\s]*\"|'[^'\s]*'|\[[^\]]*\]|\{[^}]*\}|-?[\w.]*\w"
# A call, which stays as it is, a setting, or the name of a parameter that is no word of English.
_SETTING = re.compile(
    rf"\w\([^()]*\)|(?<![\w.\-/])(?<!--param )([a-z][a-z_]*[a-z])=({_VALUE})"
    r"|(?<![\w.\-/'\"])([a-z]+(?:_[a-z]+)+)(?![\w=('\"]|\.\w)"
)
_FILE = re.compile(r"\.[A-Za-z]\w{0,7}(:\w+)?$")

# What only Python can follow. A file or a column may have such a name, but then it is quoted.
_PYTHON = re.compile(
    r"\bmvcca\.(?!interop\.migration)[A-Za-z_]\w*|\bviews?\.\w|\bviews?\[|\bViews[.(]|\w\.reshape\(|"
    r"\b(PerView|TruncatedSVD|SimpleImputer|OneHotEncoder|Tokens|TfidfVectorizer|FoldSearchCV|"
    r"GridSearchCV|CellCCA|LayerSums|JoinViews)\b|\b[a-z_]+\(\w*=|\b[A-Z]\w+\([a-z_]+=|"
    r"\bpartial_fit\b|\bset_\w+\(|\b(X_val|sample_weight)\b|\b[a-z_]+=(?=[\s.,;:)]|$)|"
    r"\b\w+_(intervals|vectors|correlations)\b|frame\[|\by\.loc"
)
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")


def as_typed(
    message: str, parser: ArgumentParser | None = None, arguments: Collection[str] = ()
) -> str:
    """A message of the library in words of the command line.

    Parameters
    ----------
    message : str
        What the library says.
    parser : ArgumentParser, optional
        That of the command, whose options have the names of parameters.
    arguments : collection of str
        What the user typed; names of files in it stay as they are.

    Returns
    -------
    str
        Parameters are options. Sentences of advice that only Python can follow are left out; the
        first sentence, which says what is wrong, stays.
    """
    files = {word for one in arguments for word in (one, one.partition("=")[2])}
    files = {one for one in files if _FILE.search(one) and one in message}
    marks = {f"\0{number}\0": one for number, one in enumerate(sorted(files, key=len)[::-1])}
    for mark, file in marks.items():
        message = message.replace(file, mark)
    first, *others = re.split(r"(?<=[.?!]) (?=[A-Z\"'`])", with_options(message, parser))
    text = " ".join([_told(first), *(one for one in others if not _is_python(one))])
    for mark, file in marks.items():
        text = text.replace(mark, file)
    return text


def with_options(message: str, parser: ArgumentParser | None) -> str:
    """A message in which settings of the library are options of a command."""
    actions = parser._actions if parser else []
    options = {action.dest: action for action in actions[::-1] if action.option_strings}
    for pattern, words in _ADVICE.items():
        message = re.sub(pattern, words, message)

    def option(found: re.Match[str]) -> str:
        if found[3] in options:
            return options[found[3]].option_strings[0]
        if found[1] is None:
            return found[0]
        name, value = found[1], found[2].strip("\"'")
        if name in options:
            return _with_value(options[name], value)
        return f"--param {name}={value}" if "params" in options else f"{name}={value}"

    return _SETTING.sub(option, message)


def _with_value(option: Action, value: str) -> str:
    flag, last = option.option_strings[0], option.option_strings[-1]
    if option.nargs != 0:
        return f"{flag} {'none' if value == 'None' else value}"
    if option.const is None:  # --name and --no-name
        return last if value == "False" else flag
    return flag if value == str(option.const) else f"{option.dest}={value}"


def _is_python(sentence: str) -> bool:
    return _PYTHON.search(_QUOTED.sub("''", sentence)) is not None


def _told(sentence: str) -> str:
    """A sentence without the advice after its last semicolon, if only Python can follow it."""
    said, mark, advice = sentence.rpartition("; ")
    return f"{said}." if mark and _is_python(advice) and not _is_python(said) else sentence
