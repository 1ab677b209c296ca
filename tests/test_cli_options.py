"""Options that are parameters of functions: all of them, with the names, types and defaults."""

from __future__ import annotations

import inspect
import json
import re
from importlib import import_module
from unittest.mock import Mock

import numpy as np
import pytest
from commands import run

import mvcca
from mvcca.cli import signatures
from mvcca.cli.options import (
    ALIGN,
    COMPARE,
    HITS,
    INDEX,
    MIGRATE,
    NETWORK_FLAGS,
    NO_OPTIONS,
    REPRESENTATIONS,
    STUDY,
    VECTORS,
)
from mvcca.cli.parser import parsed, parser_of
from mvcca.cli.signatures import Parameter, chosen, parameters_of
from mvcca.comparison.registry import METHODS
from mvcca.inspection import study
from mvcca.retrieval import retrieval_vectors

COMMAND_OF = {
    STUDY: "test",
    ALIGN: "align",
    MIGRATE: "migrate",
    REPRESENTATIONS: "similarity",
    INDEX: "search",
    HITS: "search",
    VECTORS: "transform",
    COMPARE: "compare",
}
NEEDED = {
    "test": ["x.csv", "y.csv"],
    "align": ["x.npy", "y.npy", "-o", "m.mvcca"],
    "migrate": ["old.npy", "new.npy", "-o", "new.npy"],
    "similarity": ["layers"],
    "search": ["m.mvcca", "--gallery", "a=a.npy", "--query", "b=b.npy"],
    "transform": ["m.mvcca", "--view", "a=a.npy", "-o", "s.npy"],
    "compare": ["--view", "a=a.npy", "--view", "b=b.npy"],
}


def function_of(path):
    module, _, name = path.rpartition(".")
    return getattr(import_module(module), name)


def signature_of(path):
    parameters = inspect.signature(function_of(path)).parameters.values()
    return {one.name: None if one.default is one.empty else one.default for one in parameters}


def test_the_functions_of_all_commands_are_below():
    assert COMMAND_OF.keys() == NO_OPTIONS.keys()


@pytest.mark.parametrize("path", NO_OPTIONS)
def test_every_parameter_is_an_option_or_has_a_reason(path):
    flags = {action.dest for action in parser_of(COMMAND_OF[path])._actions}
    assert signature_of(path).keys() - flags == NO_OPTIONS[path].keys()
    assert all(NO_OPTIONS[path].values())


@pytest.mark.parametrize("path", NO_OPTIONS)
def test_what_docstrings_say_of_parameters_is_their_signature(path):
    described, expected = parameters_of(path), signature_of(path)
    assert list(described) == list(expected)
    assert {name: one.default for name, one in described.items()} == expected
    function = function_of(path)
    hints = inspect.get_annotations(function.__init__ if inspect.isclass(function) else function)
    for name, hint in hints.items():
        if "Literal[" in hint:
            choices = re.findall(r'"(\w+)"', described[name].type.partition("}")[0])
            assert {*choices} == {*re.findall(r"['\"](\w+)['\"]", hint)}


@pytest.mark.parametrize("path", NO_OPTIONS)
def test_without_sources_the_function_is_imported_for_its_docstring(path, monkeypatch):
    expected = parameters_of(path)
    monkeypatch.setattr(signatures.Path, "read_text", Mock(side_effect=FileNotFoundError))
    assert parameters_of.__wrapped__(path) == expected


@pytest.mark.parametrize("command", NEEDED)
def test_options_that_are_not_given_have_the_defaults_of_the_function(command):
    found = parsed([command, *NEEDED[command]])
    for path in (path for path, name in COMMAND_OF.items() if name == command):
        for name, default in signature_of(path).items():
            if name in found.chosen:
                seed = 0 if name == "random_state" else None  # the same figures every time
                assert getattr(found, name) == (seed if default is None else default)


@pytest.mark.parametrize("name", METHODS)
def test_every_parameter_of_a_method_is_set_by_param(name):
    method = METHODS[name]
    if method.is_deep:
        pytest.importorskip("torch")
    module, _, estimator = method.path.partition(":")
    known = {*inspect.signature(getattr(import_module(module), estimator)).parameters}
    objects = {"callbacks", "encoders"}  # which text cannot express
    assert method.takes() == known - method.fixed.keys() - objects
    assert not method.is_deep or method.takes() & NETWORK_FLAGS.keys()


def test_the_value_of_an_option_reaches_the_function(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    views = {name: rng.standard_normal((40, 4)) for name in ("a", "b")}
    for name, X in views.items():
        np.save(f"{name}.npy", X)
    fast = ("test", "a.npy", "b.npy", "--permutations", 19, "--json")
    for more, params in (((), {}), (("--cv", 3, "--seed", 5), {"cv": 3, "random_state": 5})):
        found = json.loads(run(capsys, *fast, *more)[1])
        expected = study(views, n_permutations=19, **({"random_state": 0} | params)).as_dict()
        assert [line.split(":")[0] for line in found.pop("read")] == ["a.npy", "b.npy"]
        assert found == json.loads(json.dumps(expected))
    mvcca.save(mvcca.CCA(2, reg=0.1).fit(views), "m.mvcca")
    transform = ("transform", "m.mvcca", "--view", "a=a.npy", "--vectors", "gallery")
    run(capsys, *transform, "--similarity", "euclidean", "-o", "v.npy")
    rows = {"a": views["a"]}
    expected = retrieval_vectors(mvcca.load("m.mvcca"), rows, similarity="euclidean")["a"]
    np.testing.assert_array_equal(np.load("v.npy"), expected)


NEW = {
    ("int", 3): ("--strength", "4", 4, "-4"),
    ("positive float", 2.0): ("--strength", ".5", 0.5, "0"),
    ("float, optional", None): ("--strength", "0", 0.0, "-1"),
    ("float between 0 and 1", 0.5): ("--strength", ".1", 0.1, "1"),
    ("float or sequence of float, optional", None): ("--strength", "1", [1.0], "x"),
    ('{"low", "high"}', "low"): ("--strength", "HIGH", "high", "height"),
    ("str or iterable of str", ("a",)): ("--strength", "a,b", ("a", "b"), "a,,b"),
    ("bool", False): ("--strength", None, True, None),
    ("bool", True): ("--no-strength", None, False, None),
}


@pytest.mark.parametrize("command", NEEDED)
@pytest.mark.parametrize(("kind", "default"), NEW)
def test_a_new_parameter_of_the_function_is_an_option(command, kind, default, monkeypatch, capsys):
    real = parameters_of
    new = Parameter("strength", kind, default, "Whether to use `mvcca.CCA`. More of it.")
    monkeypatch.setattr(signatures, "parameters_of", lambda path: real(path) | {"strength": new})
    words = [command, *NEEDED[command]]
    assert chosen(parsed(words))["strength"] == default
    flag, word, value, wrong = NEW[kind, default]
    assert chosen(parsed([*words, flag, *([word] if word else [])]))["strength"] == value
    if wrong:
        with pytest.raises(SystemExit, match="2"):
            parsed([*words, flag, wrong])
        assert "argument --strength: " in capsys.readouterr().err
    with pytest.raises(SystemExit, match="0"):
        parsed([command, "--help"])
    assert " use CCA" in " ".join(capsys.readouterr().out.split())


def test_a_new_parameter_that_text_cannot_express_asks_for_a_reason(monkeypatch):
    new = Parameter("progress", "callable, optional", None, "Called with a line of text.")
    monkeypatch.setattr(signatures, "parameters_of", lambda _: {"progress": new})
    with pytest.raises(LookupError, match="progress: no option has the type 'callable, optional'"):
        parser_of("align")
