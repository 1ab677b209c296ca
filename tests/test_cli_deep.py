"""The methods with networks on the command line: what they print and write, interrupted or not.

Judged by the estimators called from Python with the same settings, and by linear CCA, which does
not see what networks are for.
"""

from __future__ import annotations

import json
import re
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from commands import figures, refuse, run, succeed  # noqa: E402

import mvcca  # noqa: E402
from mvcca import Views, deep  # noqa: E402
from mvcca.comparison.registry import GROUPS, METHODS  # noqa: E402
from mvcca.deep.trainer import Trainer  # noqa: E402
from mvcca.retrieval import retrieval_vectors  # noqa: E402

N = 80
VIEWS = ("--view", "image=image.npy", "--view", "text=text.npy")
OPTIONS = ("--epochs", 2, "--batch-size", 32, "--device", "cpu")
FIT = ("fit", *VIEWS, "-o", "model.mvcca", "--param", "n_components=2", *OPTIONS)
RANDOM = ("--param", "start=random")  # one training; the choice of a start has tests of its own
DCCA = (*FIT, "--method", "dcca", "--hidden", 16, *RANDOM)

SMALL = {"max_epochs": 2, "batch_size": 32, "random_state": 0}
NETS = {**SMALL, "hidden_layer_sizes": (16,)}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The folder that commands run in: two views that share three dimensions."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    shared = rng.standard_normal((N, 3))
    for name, width in (("image", 6), ("text", 5)):
        noise = 0.3 * rng.standard_normal((N, width))
        np.save(f"{name}.npy", np.tanh(shared @ rng.standard_normal((3, width))) + noise)
    return tmp_path


def views():
    return Views({"image": np.load("image.npy"), "text": np.load("text.npy")})


def compare(capsys, *arguments):
    return succeed(
        capsys, "compare", "--verbose", *VIEWS, "--n-components", 2, *OPTIONS, *arguments
    )


def assert_same_scores(one, other):
    for name in ("image", "text"):
        np.testing.assert_allclose(one[name], other[name], atol=1e-6)


# ---- a method that learns from labels -----------------------------------------------------------


def test_sam_is_fitted_with_labels(capsys):
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, N)
    for name, width in (("image", 6), ("text", 5)):
        noise = 0.5 * rng.standard_normal((N, width))
        np.save(f"{name}.npy", np.tanh(2 * rng.standard_normal((3, width)))[y] + noise)
    np.save("y.npy", y)
    options = ("--labels", "y.npy", "--epochs", 2, "--batch-size", 16, "--hidden", 16)
    fit = ("fit", *VIEWS, "--method", "sam", "--param", "n_components=3", "-o", "sam.mvcca")
    found = json.loads(succeed(capsys, *fit, *options, "--json"))
    assert (found["method"], found["n_components"]) == ("SAM", 3)
    expected = deep.SAM(3, **{**NETS, "batch_size": 16}).fit(views(), y).transform(views())
    assert_same_scores(mvcca.load("sam.mvcca").transform(views()), expected)


# ---- figures and models are those of the library ------------------------------------------------


def test_compare_prints_the_figures_of_the_library(capsys):
    tried = {"dcca": deep.DCCA(2, **NETS, start="random"), "corrnet": deep.CorrNet(2, **SMALL)}
    assert tried.keys() < set(GROUPS["deep"])
    options = ("--methods", "dcca,corrnet", "--hidden", 16, "--cv", 2, *RANDOM)
    out = compare(capsys, *options)
    result = mvcca.compare(tried, views(), cv=2)
    for name in tried:
        expected = f"{result.standing(name, 'object').shown():.3f}"
        assert figures(out)[METHODS[name].title][0] == expected, name
    assert figures(compare(capsys, *options, "--seed", 1)) != figures(out)


@pytest.mark.parametrize("name", ["ds-dcca", "msds"])
def test_fit_writes_the_model_of_the_library(capsys, name):
    given = RANDOM if name == "msds" else ()
    succeed(capsys, *FIT, "--method", name, "--hidden", 16, *given)
    model = mvcca.load("model.mvcca")
    expected = deep.MSDS(2, **NETS, start="random") if given else deep.DSDCCA(2, **NETS)
    assert_same_scores(model.transform(views()), expected.fit(views()).transform(views()))
    assert not Path("model.mvcca.partial").exists()


def test_transform_search_and_info_take_the_model(capsys):
    out = succeed(capsys, *DCCA)
    assert re.search(r"^epochs +2, weights of epoch 2$", out, re.M)
    scores = deep.DCCA(2, **NETS, start="random").fit(views()).transform(views())
    command = ["transform", "model.mvcca", *VIEWS, "-o", "{view}-scores.npy"]
    succeed(capsys, *command, "--block-rows", 7)
    for name in ("image", "text"):
        np.testing.assert_allclose(np.load(f"{name}-scores.npy"), scores[name], atol=1e-6)
    between = ["--gallery", "image=image.npy", "--query", "text=text.npy"]
    succeed(capsys, "search", "model.mvcca", *between, "-k", 1, "-o", "hits.npy")
    vectors = retrieval_vectors(deep.DCCA(2, **NETS, start="random").fit(views()), views())
    best = (vectors["text"] @ vectors["image"].T).argmax(axis=1)
    assert (np.load("hits.npy")[:, 0] == best).all()
    found = json.loads(succeed(capsys, "info", "model.mvcca", "--json"))
    assert (found["method"], found["epochs"], found["best_epoch"]) == ("DCCA", 2, 2)
    assert found["parameters"]["hidden_layer_sizes"] == [16]
    assert found["views"] == {"image": 6, "text": 5}


def test_patience_alone_sets_a_tenth_of_the_rows_aside(capsys):
    command = [*DCCA, "--patience", 1, "--epochs", 40]
    succeed(capsys, *command)
    asked = {**NETS, "max_epochs": 40, "patience": 1, "validation_fraction": 0.1}
    expected = deep.DCCA(2, **asked, start="random").fit(views())
    found = mvcca.load("model.mvcca")
    assert found.best_epoch_ == expected.best_epoch_
    assert len(found.history_["epoch"]) == expected.best_epoch_ + 1 < 40
    assert_same_scores(found.transform(views()), expected.transform(views()))


def test_a_ridge_that_is_given_is_that_of_networks_too(capsys):
    arguments = ("--methods", "cca,dcca", "--hidden", 16, "--cv", 2, "--reg", "0.3", *RANDOM)
    out = compare(capsys, *arguments, "--report", "out.md")
    assert "2 components, reg 0.3" in out
    result = mvcca.compare({"DCCA": deep.DCCA(2, reg=0.3, **NETS, start="random")}, views(), cv=2)
    assert figures(out)["DCCA"][0] == f"{result.standing('DCCA', 'object').shown():.3f}"


# ---- methods that cannot take the data, and arguments that do not go together -------------------


def test_more_views_than_a_method_takes_are_a_reason(capsys):
    options = ("--methods", "dcca,corrnet", "--hidden", 8, *RANDOM)
    out = compare(capsys, "--view", "more=text.npy", *options)
    assert re.search(r"^CorrNet +skipped: CorrNet takes 2 views, got 3", out, re.M)
    assert "DCCA" in figures(out)


def test_a_device_that_is_not_there_is_one_line(capsys):
    code, out, err = run(capsys, *DCCA, "--device", "cuda:99")
    assert (code, out) == (1, "")
    assert "--device cuda:99 needs an NVIDIA GPU" in err
    assert err.count("\n") == 1
    assert not Path("model.mvcca.partial").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--method", "corrnet", "--hidden", 8], "--hidden is not a parameter of corrnet"),
        (["--method", "dcca", "--param", "max_epochs=3"], "--param max_epochs are the same"),
        (["--method", "dcca", "--param", "layers=3"], "dcca has the parameters batch_size, "),
        (["--method", "dcca", "--param", "encoders=[1, 2]"], "--param encoders: dcca has the"),
    ],
)
def test_a_fit_that_makes_no_sense_is_a_usage_error(capsys, arguments, message):
    assert message in refuse(capsys, *FIT, *arguments)


def test_workers_have_nothing_to_do_with_networks(capsys):
    command = ["fit", *VIEWS, "-o", "model.mvcca", "--method", "dcca", "--workers", 2]
    assert "trains networks in one process" in refuse(capsys, *command)


# ---- interruptions and progress -----------------------------------------------------------------


def interrupt(monkeypatch, capsys, *arguments):
    """The standard error of a fit that is interrupted in its third epoch."""
    train_epoch = Trainer._train_epoch

    def train_or_stop(self):
        if self.epoch == 2:
            raise KeyboardInterrupt
        return train_epoch(self)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_train_epoch", train_or_stop)
        code, out, err = run(capsys, *arguments)
    assert (code, out) == (130, "")
    return err


def epochs_trained(monkeypatch):
    """Numbers of the epochs that are trained from now on."""
    numbers = []
    train_epoch = Trainer._train_epoch

    def count(self):
        numbers.append(self.epoch + 1)
        return train_epoch(self)

    monkeypatch.setattr(Trainer, "_train_epoch", count)
    return numbers


def test_an_interrupted_training_resumes_to_the_same_scores(capsys, monkeypatch):
    command = [*DCCA, "--epochs", 5]
    succeed(capsys, *command)
    undisturbed = mvcca.load("model.mvcca").transform(views())
    Path("model.mvcca").unlink()

    with monkeypatch.context() as patch:
        patch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
        err = interrupt(monkeypatch, capsys, *command)
    assert err.endswith("\nmvcca: interrupted: continue with --resume (model.mvcca.partial)\n")
    numbers = epochs_trained(monkeypatch)
    succeed(capsys, *command, "--resume")
    assert numbers == [3, 4, 5]
    resumed = mvcca.load("model.mvcca").transform(views())
    for name in ("image", "text"):
        assert (resumed[name] == undisturbed[name]).all()
    assert not Path("model.mvcca.partial").exists()


def test_only_the_same_training_resumes_but_on_any_device(capsys, monkeypatch):
    command = [*DCCA, "--epochs", 4]
    interrupt(monkeypatch, capsys, *command)
    code, _, err = run(capsys, *command, "--batch-size", 40, "--resume")
    assert code == 1
    assert "started with a different --param" in err
    succeed(capsys, *command, "--device", "torch:cpu", "--resume")


def test_epochs_are_told_at_a_terminal_and_nowhere_else(capsys, monkeypatch):
    succeed(capsys, *DCCA)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    _, _, err = run(capsys, *DCCA)
    assert re.search(r"epoch 2 of 2, loss -\d\.\d+\n$", err)
    options = (*OPTIONS, "--n-components", 2, *RANDOM)
    _, _, err = run(capsys, "compare", "--verbose", *VIEWS, "--methods", "dcca", *options)
    assert "DCCA, fold 5 of 5, epoch 2 of 2, loss -" in err
    assert err.endswith("\r\x1b[K")


def test_a_choice_of_starts_is_told_and_resumes(capsys, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((250, 3))  # squares have no correlation
    np.save("image.npy", X)
    np.save("text.npy", X**2 + 0.05 * rng.standard_normal((250, 3)))
    command = [*FIT, "--method", "ccal", "--hidden", 16, "--epochs", 4]
    succeed(capsys, *command)
    undisturbed = mvcca.load("model.mvcca")
    Path("model.mvcca").unlink()
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    err = interrupt(monkeypatch, capsys, *command)
    assert "start 1 of 3 (linear), epoch 2 of 4, loss" in err
    numbers = epochs_trained(monkeypatch)
    _, _, err = run(capsys, *command, "--resume")
    best = undisturbed.best_epoch_
    assert numbers == [3, 4, 1, 2, 3, 4, 1, 2, 3, 4, *range(1, best + 1)]
    assert "start 3 of 3 (features), epoch 4 of 4, loss" in err
    assert f"), epoch {best} of {best}, loss" not in err  # of all rows, which is no trial
    assert f"epoch {best} of {best}, loss" in err
    assert_same_scores(mvcca.load("model.mvcca").transform(views()), undisturbed.transform(views()))


# ---- the demo, and the report -------------------------------------------------------------------


def test_the_deep_demo_shows_all_of_them_on_the_halves(capsys):
    few = ["--epochs", 1, "--hidden", 16, "--batch-size", 256, "--no-report", "--cv", 0.2, *RANDOM]
    out = succeed(capsys, "demo", "--verbose", "--deep", "--no-tune", *few)
    titles = {METHODS[name].title for name in ("cca", "nkcca", *GROUPS["deep"])}
    assert figures(out).keys() == titles
    assert out.count("handwritten digits, ") == 1


def test_the_report_says_how_networks_were_trained(capsys):
    compare(capsys, "--methods", "ds-dcca", "--hidden", 16, "--report", "out.html")
    html = Path("out.html").read_text(encoding="utf-8")
    assert re.search(r"DSDCCA\([^<]*hidden_layer_sizes=\(16,\),[^<]*max_epochs=2,", html)
    assert f"torch {version('torch')}" in html
