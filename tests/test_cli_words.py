"""Errors, warnings and next steps of the command line are in words that its reader can type."""

from __future__ import annotations

import ast
import re
import shlex
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import mvcca
from mvcca.cli import main
from mvcca.cli.commands import COMMANDS as KNOWN
from mvcca.cli.parser import parser_of
from mvcca.cli.values import methods
from mvcca.cli.wording import as_typed

PARSERS = {name: parser_of(name) for name in KNOWN}
# What a reader of the command line cannot type.
PYTHON = re.compile(
    r"\bviews\[|\bViews[.(]|mvcca\.[A-Z]|mvcca\.\w+\(|PerView|SimpleImputer|TruncatedSVD|"
    r"FoldSearchCV|GridSearchCV|\.reshape\("
)
ROOMS_OF_COMMANDS = (
    "base", "blocks", "comparison", "compose", "inspection", "kernel", "linear", "machine",
    "measures", "model_selection", "problem", "retrieval", "similarity", "statistics", "views",
)  # fmt: skip
NO_MESSAGES = {"report.py", "gone_names.py"}  # statements of Python for Python


def messages():
    """Texts of the library that name Python, their formatted values replaced by a word."""
    for room in ROOMS_OF_COMMANDS:
        for file in sorted(Path(mvcca.__file__).with_name(room).rglob("*.py")):
            tree = ast.parse(file.read_text(encoding="utf-8"))
            for node in texts_in(tree):
                text = text_of(node)
                if PYTHON.search(text) and " " in text and file.name not in NO_MESSAGES:
                    yield pytest.param(text, id=f"{file.name}:{node.lineno}")


def texts_in(node):
    """Whole texts below a node, without docstrings."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
            continue
        if isinstance(child, ast.Constant | ast.JoinedStr) or (
            isinstance(child, ast.BinOp) and isinstance(child.op, ast.Add)
        ):
            yield child
        else:
            yield from texts_in(child)


def text_of(node):
    if isinstance(node, ast.JoinedStr):
        return "".join(map(text_of, node.values))
    if isinstance(node, ast.BinOp):
        return text_of(node.left) + text_of(node.right)
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    return "Thing"


@pytest.mark.parametrize("message", list(messages()))
def test_no_advice_of_the_library_names_python(message):
    for command, parser in PARSERS.items():
        # The first sentence says what is wrong, and stays; the others are advice.
        typed = as_typed(f"It is wrong. {message.strip()}", parser)
        first, *advice = re.split(r"(?<=[.?!]) ", typed)
        assert first == "It is wrong."
        for one in advice:
            assert not PYTHON.search(one), (command, one)


def texts_of(file):
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return [(node.lineno, text) for node in texts_in(tree) if " " in (text := text_of(node))]


HELP_OF_PARAM = re.compile("^parameter of the method")  # whose values are typed as NAME=VALUE


def test_the_library_names_calls_and_the_command_line_options():
    """Texts of all errors of both doors: no option in the library, no setting in a command."""
    wrong, package = [], Path(mvcca.__file__).parent
    for file in sorted(package.rglob("*.py")):
        is_command = file.is_relative_to(package / "cli")
        if is_command and file.name == "wording.py":
            continue  # it turns one into the other
        foreign = r"(?<!--param )\b[a-z_]{3,}=(True|False|None|['\"\d])" if is_command else (
            r"(?<![\w-])--[a-z]"
        )  # fmt: skip
        wrong += [
            f"{file.name}:{number}: {text[:80]}"
            for number, text in texts_of(file)
            if (re.search(foreign, text) or (is_command and PYTHON.search(text)))
            and not HELP_OF_PARAM.match(text)
        ]
    assert not wrong, "\n".join(wrong)


def test_names_of_methods_are_known_in_any_case():
    from mvcca.comparison.registry import METHODS, selected

    for name in METHODS:
        for spelled in (name.upper(), name.title(), name.replace("-", "_")):
            assert selected([spelled]) == [name]


RAISED = {
    "fill in": (mvcca.blocks.checks.FILL_IN, "fit", "with --missing em, cca and", None),
    "complete": (
        "NCCA learns from pairs. Fit views[views.seen.all(axis=1)].",
        "fit",
        "NCCA learns from pairs. Keep the objects of all views: --id COLUMN --complete.",
        None,
    ),
    "option of fit": ('Use missing="em".', "fit", "Use --missing em.", None),
    "parameter": ('Use solver="svd".', "fit", "Use --param solver=svd.", None),
    "option": ('Use missing="em".', "test", "Use --missing em.", None),
    "goal": ('Use cv_goal="class".', "fit", "Use --goal class.", None),
    "components": ("n_components=9 is too many.", "test", "--components 9 is too many.", None),
    "of compare": ("n_components=9 is too many.", "compare", "--n-components 9 is too many.", None),
    "a flag": ("pass within=True if", "test", "pass --within if", None),
    "an opposite": ("Use rank_gaussian=False.", "test", "Use --no-rank.", None),
    "another flag": ("with tune=False.", "compare", "with --no-tune.", None),
    "no flag": ("with tune=True.", "compare", "with tune=True.", None),
    "a seed": ("Try random_state=3.", "align", "Try --seed 3.", None),
    "networks": ("Use max_epochs=3.", "fit", "Use --epochs 3.", None),
    "groups": ("If it names families, pass it as groups.", "test", "give it by --groups.", None),
    "budget": ("Pass budget=None", "compare", "Pass --budget none", None),
    "header": ("use header=True or header=False", "fit", "use --header yes or no",
               None),
    "a call": ("use np.savez('rows.npz', rows=X)", "fit", "np.savez('rows.npz', rows=X)", None),
    "a file": ("reg=0.1.npy: is empty", "fit", "reg=0.1.npy: is empty", "a=reg=0.1.npy"),
    "a file like a call": ("f(k=1).csv: bad", "fit", "f(k=1).csv: bad", "a=f(k=1).csv"),
    "already typed": ("Use --param missing=em.", "fit", "Use --param missing=em.", None),
}  # fmt: skip


@pytest.mark.parametrize("what", RAISED)
def test_settings_become_options_of_the_command(what):
    message, command, expected, argument = RAISED[what]
    found = as_typed(message, PARSERS[command], [argument] if argument else [])
    assert expected in found
    assert as_typed(found, PARSERS[command], [argument] if argument else []) == found


# ---- as raised by commands ----------------------------------------------------------------------


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    y = np.arange(120) % 3
    z = rng.normal(size=(120, 3)) + 2 * np.eye(3)[y]
    a = z @ rng.normal(size=(3, 6)) + 0.3 * rng.normal(size=(120, 6))
    b = z @ rng.normal(size=(3, 5)) + 0.3 * rng.normal(size=(120, 5))
    np.save("a.npy", a)
    np.save("b.npy", b)
    np.save("y.npy", y)
    a[3, 2] = np.nan
    np.save("holes.npy", a)
    for name, X, rows in (("a", a, slice(0, 110)), ("b", b, slice(10, 120))):
        lines = [f"n{i}," + ",".join(map(str, X[i])) for i in range(120)[rows]]
        header = "id," + ",".join(f"{name}{j}" for j in range(X.shape[1]))
        text = "\n".join([header, *lines]).replace("nan", "0")
        Path(f"{name}.csv").write_text(text, encoding="utf-8")


VIEWS = ["--view", "a=a.npy", "--view", "b=b.npy"]
BY_ID = ["--view", "a=a.csv", "--view", "b=b.csv", "--id", "id"]
COMMANDS = {
    "holes": ["fit", "--view", "a=holes.npy", "--view", "b=b.npy", "--method", "cca"],
    "holes compared": ["compare", "--view", "a=holes.npy", "--view", "b=b.npy"],
    "holes tested": ["test", "holes.npy", "b.npy"],
    "incomplete": ["fit", *BY_ID, "--method", "ncca"],
    "incomplete pls": ["fit", *BY_ID, "--method", "nccl"],
    "incomplete compared": ["compare", *BY_ID, "--methods", "cmdn,ncca", "--budget", "2s"],
    "no confounds": ["fit", *VIEWS, "--method", "cca", "--param", "confounds=z", "--no-tune"],
    "a setting": ["fit", *VIEWS, "--method", "cca", "--param", "reg_unit=absolute",
                  "--param", "reg=auto", "--no-tune"],
    "em": ["fit", "--view", "a=holes.npy", "--view", "b=b.npy", "--method", "cca",
           "--param", "missing=em", "--param", "reg=auto", "--no-tune"],
    "too many": ["fit", *VIEWS, "--method", "cca", "--param", "n_components=90"],
    "three": ["fit", *VIEWS, "--view", "c=b.npy", "--method", "cca", "--no-tune"],
    "poly": ["fit", *VIEWS, "--method", "kcca", "--param", "kernel=poly",
             "--param", "gamma=median"],
    "weighting": ["search", "model.mvcca", "--gallery", "a=a.npy", "--query", "b=b.npy",
                  "--weighting", "likelihood+csls"],
}  # fmt: skip


@pytest.mark.parametrize("what", COMMANDS)
def test_errors_and_warnings_of_commands_name_no_python(what, capsys):
    command = COMMANDS[what]
    if command[0] == "search":
        main(["fit", *VIEWS, "--method", "cca", "--no-tune", "-o", "model.mvcca"])
        capsys.readouterr()
    if command[0] == "fit":
        command = [*command, "-o", "model.mvcca"]
    with suppress(SystemExit):
        main(command)
    out, err = capsys.readouterr()
    assert out + err
    assert not PYTHON.search(err), err
    assert not PYTHON.search(out), out
    for setting in re.findall(r"(?<!--param )\b[a-z_]+=[\w\"']+", err):
        assert any(setting in word for word in command), err


@pytest.mark.parametrize(
    ("compared", "measures"),
    [
        pytest.param("cca,mlcca", "map@50,mrr", marks=pytest.mark.slow),
        ("cca,mlcca", "MRR"),
        ("cca", "mrr,map@50"),
        pytest.param("mlcca,pls", "mrr,map@50", marks=pytest.mark.slow),
    ],
)
def test_the_next_step_chooses_settings_for_the_items_that_it_names(compared, measures, capsys):
    options = ["--labels", "y.npy", "--methods", compared, "--measures", measures, "--cv", "2"]
    assert main(["compare", *VIEWS, *options]) == 0
    steps = re.findall(r"^Next, for (.*?): mvcca (.*)$", capsys.readouterr().out, re.M)
    for what, step in steps:
        words = shlex.split(step)
        goal = words[words.index("--goal") + 1] if "--goal" in words else None
        default = "class" if "mlcca" in words else "object"
        assert (goal or default) == ("class" if "class" in what else "object")
        assert main(words) == 0


UPPER = {
    "--method": ["fit", *VIEWS, "--method", "CCA", "--no-tune", "-o", "m.mvcca"],
    "--goal": ["fit", *VIEWS, "--method", "Cca", "--goal", "Object", "-o", "m.mvcca"],
    "--methods": ["compare", *VIEWS, "--methods", "CCA,Pls", "--budget", "NONE", "--cv", "2"],
    "--measures": ["compare", *VIEWS, "--methods", "pls", "--measures", "MRR,R@1", "--cv", "2"],
    "measures of layers": ["similarity", "a.npy", "b.npy", "--measures", "CKA,SVCCA"],
    "--weighting": ["search", "m.mvcca", "--gallery", "a=a.npy", "--query", "b=b.npy",
                    "--weighting", "Likelihood"],
    "--similarity": ["search", "m.mvcca", "--gallery", "a=a.npy", "--query", "b=b.npy",
                     "--similarity", "COSINE"],
    "--direction": ["migrate", "a.npy", "b.npy", "-o", "m.npy", "--direction", "Items",
                    "--method", "Affine", "--force"],
    "--missing": ["test", "a.npy", "b.npy", "--missing", "EM", "--permutations", "20"],
    "--header": ["fit", *BY_ID, "--header", "YES", "--method", "PLS", "--no-tune",
                 "-o", "m.mvcca"],
    "--reg": ["compare", *VIEWS, "--methods", "cca", "--reg", "Auto", "--cv", "2"],
}  # fmt: skip


@pytest.mark.parametrize("option", UPPER)
def test_names_are_known_in_any_case(option, capsys):
    main(["fit", *VIEWS, "--method", "cca", "--no-tune", "-o", "m.mvcca"])
    assert main(UPPER[option]) == 0, capsys.readouterr().err
    assert methods("Default") == ("default",)


@pytest.mark.parametrize(
    ("command", "message", "words"),
    [
        ("fit", "None occurs in min_count=2 of 6 texts. Lower min_count.", "Lower --min-count."),
        ("test", "Expected n_components of view 'a' to be at most 3.", "Expected --components of"),
        (
            "test",
            "within=True exchanges rows within groups: pass groups.",
            "give --groups.",
        ),
        ("transform", "of the queries: pass it as query, or", "give it by --query-view, or"),
        (
            "fit",
            "There is no column 'min_count'; see a.min_count.",
            "'min_count'; see a.min_count.",
        ),
    ],
)
def test_names_of_parameters_are_options_too(command, message, words):
    assert words in as_typed(message, PARSERS[command])
