"""`mvcca fit`, `transform`, `search` and `info`: files in, files out; interrupted and resumed.

Models are judged by those of the library on the same rows in memory, hits by sorting all scores,
and what an interruption leaves by real signals to real processes.
"""

from __future__ import annotations

import csv
import gc
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tracemalloc
import unicodedata
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from commands import fail, refuse, run, succeed, without_reads
from scipy import sparse
from scipy.io import savemat
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

import mvcca
from mvcca import CCA, MVMLCCA, PerView, Views
from mvcca.blocks.sources import read_whole
from mvcca.cli import main
from mvcca.comparison.registry import METHODS
from mvcca.machine.archive import read_archive, write_archive
from mvcca.retrieval import retrieval_vectors, top_k
from mvcca.statistics.passes import ProjectedRows, _checkpoint
from mvcca.views.files import read_ids, read_labels

N = 60
CLASSES = np.arange(N) % 4
FIT = ("fit", "--view", "image=image.npy", "--view", "text=text.npy", "-o", "model.mvcca")
CCA_2 = ("--method", "cca", "--param", "n_components=2", "--param", "reg=0.01")
COMPARE_2 = ("--n-components", "2", "--no-tune", "--cv", "2", "--methods")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The folder that commands run in: two views that share three dimensions, and classes."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    shared = rng.standard_normal((N, 3)) + np.eye(4, 3)[CLASSES]
    image = shared @ rng.standard_normal((3, 6)) + 0.3 * rng.standard_normal((N, 6))
    text = shared @ rng.standard_normal((3, 5)) + 0.3 * rng.standard_normal((N, 5))
    np.save("image.npy", image * (np.abs(image) > 0.2))
    np.save("text.npy", text)
    np.save("y.npy", CLASSES)
    return tmp_path


@pytest.fixture
def model():
    """A model of the library, saved."""
    fitted = CCA(2, reg=0.01).fit(arrays())
    mvcca.save(fitted, "model.mvcca")
    return fitted


def arrays():
    return {"image": np.load("image.npy"), "text": np.load("text.npy")}


def same_model(first, second):
    """Whether two models project alike."""
    assert first.view_names_ == second.view_names_
    for name in first.view_names_:
        np.testing.assert_allclose(first.weights_[name], second.weights_[name], atol=1e-9)
        np.testing.assert_allclose(first.means_[name], second.means_[name], atol=1e-12)


def left_over():
    """What no command may leave behind."""
    return [path.name for path in Path().rglob("*") if path.name.endswith((".part", ".partial"))]


# ---- fit ----------------------------------------------------------------------------------------


def _save_csv(name, rows, delimiter=",", header=""):
    np.savetxt(name, rows, delimiter=delimiter, header=header, comments="", fmt="%.17g")


def _save_h5(name, rows):
    h5py = pytest.importorskip("h5py")
    file, _, key = name.partition(":")
    with h5py.File(file, "w") as new:
        new["other"] = rows[:1]
        new[key] = rows


def _save_zarr(name, rows):
    zarr = pytest.importorskip("zarr")
    zarr.create_array(name, data=rows, chunks=(7, rows.shape[1]))


def _save_parquet(name, rows):
    pytest.importorskip("pyarrow")
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(rows, columns=[f"x{i}" for i in range(rows.shape[1])])
    frame.to_parquet(name, row_group_size=11)


def _save_lists(name, rows):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    lists = pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), rows.shape[1])
    parquet.write_table(pa.table({"embedding": lists}), name, row_group_size=11)


def _save_mat(name, rows):
    file, _, key = name.partition(":")
    savemat(file, {"other": rows[:1], key: rows})


FORMATS = {
    "rows.npy": np.save,
    "rows.npz:X": lambda name, X: np.savez(name.removesuffix(":X"), X=X, other=X[:1]),
    "csr.npz": lambda name, X: sparse.save_npz(name, sparse.csr_array(X)),
    "csc.npz": lambda name, X: sparse.save_npz(name, sparse.csc_array(X)),
    "coo.npz": lambda name, X: sparse.save_npz(name, sparse.coo_array(X)),
    "rows.csv": _save_csv,
    "header.csv": lambda name, X: _save_csv(name, X, header='"a, b",c,d,e,f,g'),
    "byte order mark.csv": lambda name, X: _save_csv(name, X, header="\ufeffa,b,c,d,e,f"),
    "tabs.tsv": lambda name, X: _save_csv(name, X, delimiter="\t"),
    "rows.h5:X": _save_h5,
    "rows.zarr": _save_zarr,
    "rows.parquet": _save_parquet,
    "lists.parquet": _save_lists,
    "rows.mat:X": _save_mat,
}


UNPAIRED = ("--method", "mlcca", "--labels", "image=y.npy", "--labels", "text=y.npy")


def test_a_fit_is_tuned_as_the_library_tunes(capsys):
    command = ("fit", *FIT[1:], "--method", "cca", "--block-rows", 7)  # rows stay in the files
    found = json.loads(succeed(capsys, *command, "--json"))
    expected = CCA(n_components=None, reg="cv").fit(arrays())
    tuned = found["tuned"]
    assert tuned["chosen"] == {
        "scale": expected.scale_,
        "reg": expected.reg_,
        "n_components": expected.n_components_,
    }
    assert (tuned["ranking"], tuned["measure"]) == (expected.ranking_, "MRR")
    best = expected.cv_results_["mean_test_score"].max()
    assert tuned["value"] == pytest.approx(best, abs=1e-9)
    same_model(mvcca.load("model.mvcca"), expected)
    settings = f"ridge {expected.reg_:g}.*, 5 components, chosen by 5 folds"
    line = rf"^tuned +{settings}: MRR {best:.3f} of held-out objects$"
    assert re.search(line, succeed(capsys, "info", "model.mvcca"), re.M)
    succeed(capsys, *command, "--labels", "y.npy", "--goal", "class")
    expected = CCA(n_components=None, reg="cv", cv_goal="class").fit(arrays(), CLASSES)
    same_model(mvcca.load("model.mvcca"), expected)


def test_given_parameters_are_not_tuned(capsys):
    succeed(capsys, *FIT, "--method", "cca", "--param", "n_components=3")
    found = mvcca.load("model.mvcca")
    assert (found.n_components, found.n_components_, found.reg) == (3, 3, "cv")
    succeed(capsys, *FIT, "--method", "cca", "--no-tune")
    found = mvcca.load("model.mvcca").get_params()
    assert found == CCA().get_params()


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_of_a_view_gives_the_model_and_scores_of_the_library(capsys, name):
    FORMATS[name](name, np.load("image.npy"))
    image = ["--view", f"image={name}"]
    fit = ["fit", *image, "--view", "text=text.npy", *CCA_2, "--block-rows", 7]
    out = succeed(capsys, *fit, "-o", "model.mvcca")
    assert re.search(r"^views +image \(6\), text \(5\)$", out, re.M)
    expected = CCA(2, reg=0.01).fit(arrays())
    same_model(mvcca.load("model.mvcca"), expected)
    transform = ["transform", "model.mvcca", *image, "--block-rows", 8]
    succeed(capsys, *transform, "-o", "scores.npy")
    scores = expected.transform(arrays())["image"]
    np.testing.assert_allclose(np.load("scores.npy"), scores, atol=1e-9)
    assert not left_over()


@pytest.mark.parametrize("name", ["rows.h5:X", "rows.zarr", "csc.npz", "header.csv"])
def test_compare_reads_what_fit_reads(capsys, name):
    FORMATS[name](name, np.load("image.npy"))
    both = ["--view", "text=text.npy", *COMPARE_2, "cca"]
    expected = succeed(capsys, "compare", "--view", "image=image.npy", *both)
    found = succeed(capsys, "compare", "--view", f"image={name}", *both)
    of_measures = slice(0, 2)  # other tables have seconds, and the next command names the file
    assert found.split("\n\n")[of_measures] == expected.split("\n\n")[of_measures]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", ["cca", "kcca", "mlcca", "jrl"])
def test_a_method_gives_the_scores_of_the_library(capsys, name):
    method = METHODS[name]
    labels = [] if method.learns_from == "pairs" else ["--labels", "y.npy"]
    params = {"n_components": 2} if "n_components" in method.takes() else {}
    given = [f"--param={name}={value}" for name, value in params.items()]
    code, _, err = run(capsys, *FIT, *labels, "--method", name, *given, "--no-tune")
    assert code == 0
    assert all(line.startswith("mvcca: warning: ") for line in err.splitlines())
    expected = method.build({**params, "random_state": 0})
    views = Views(arrays())
    expected.fit(views, CLASSES)
    scores, wanted = mvcca.load("model.mvcca").transform(views), expected.transform(views)
    for view in ("image", "text"):
        np.testing.assert_allclose(scores[view], wanted[view], atol=1e-8)
    found = json.loads(succeed(capsys, "info", "model.mvcca", "--json"))
    assert found["method"] == type(expected).__name__
    assert list(found["views"].items())[:2] == [("image", 6), ("text", 5)]


def test_labels_of_every_view_make_it_a_fit_of_unpaired_views(capsys):
    np.save("image.npy", np.load("image.npy")[:40])
    np.save("y_image.npy", CLASSES[:40])
    labels = ["--labels", "text=y.npy", "--labels", "image=y_image.npy"]
    method = ["--method", "mvmlcca", "--param", "n_components=2", "--no-tune"]
    succeed(capsys, *FIT, *labels, *method)
    expected = MVMLCCA(2, within="sample").fit(arrays(), {"image": CLASSES[:40], "text": CLASSES})
    same_model(mvcca.load("model.mvcca"), expected)


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ("reg=1e-3", 1e-3),
        ("reg=.5", 0.5),
        ("reg=0", 0),
        ("reg=auto", "auto"),
        ('reg={"image": 0.5, "text": 0}', {"image": 0.5, "text": 0}),
    ],
)
def test_parameters_reach_the_method_as_values(capsys, given, value):
    succeed(capsys, *FIT, "--method", "cca", "--param", given)
    assert mvcca.load("model.mvcca").reg == value


def test_what_is_drawn_is_drawn_alike_every_time(capsys):
    method = ["--method", "fkcca", "--param", "n_landmarks=20", "--no-tune"]
    succeed(capsys, *FIT, *method)
    first = Path("model.mvcca").read_bytes()
    succeed(capsys, *FIT, *method)
    assert Path("model.mvcca").read_bytes() == first
    succeed(capsys, *FIT, *method, "--param", "random_state=1")
    assert Path("model.mvcca").read_bytes() != first


def test_warnings_are_single_lines_on_standard_error(capsys):
    code, _, err = run(capsys, *FIT, "--method", "cca", "--param", "n_components=20")
    assert code == 0
    assert err.startswith("mvcca: warning: --param n_components=20 is more than")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--method", "svm"], "unknown method 'svm'"),
        (["--method", "cca", "--param", "sigma=1"], "the parameters center, confounds"),
        (
            ["--method", "mvmlcca-label", "--labels", "y.npy", "--param", "within=sample"],
            "--param within",
        ),
        (["--method", "cca", "--param", "reg"], "expected NAME=VALUE, got 'reg'"),
        (["--method", "cca", "--param", "reg=1", "--param", "reg=2"], "--param names 'reg' twice"),
        (["--method", "mlcca"], "--method mlcca learns from labels; give --labels"),
        (["--method", "cca", "--labels", "y.npy"], "learns from pairs only"),
        (["--method", "cca", "--workers", "0"], "at least 1, got '0'"),
        (["--method", "cca", "--epochs", "2"], "--epochs is not a parameter of cca"),
        (["--method", "cca", "--workers", "2", "--scheduler", "tcp://a:1"], "not allowed with"),
        (["--method", "cca", "--goal", "class"], "--goal class needs --labels"),
        (["--method", "cca", "--goal", "class", "--no-tune"], "not allowed with"),
        ([*CCA_2, "--goal", "object"], "cca chooses none beside n_components, reg"),
        (["--method", "cca", "--param", "cv_goal=class"], "use --goal"),
        (["--method", "mlcca", "--labels", "real.npy", "--goal", "class"], "classes or label sets"),
        ([*UNPAIRED, "--goal", "object"], "no object is seen in two views"),
    ],
)
def test_a_fit_that_makes_no_sense_is_a_usage_error(capsys, arguments, message):
    np.save("real.npy", np.random.default_rng(0).standard_normal((N, 3)))
    assert message in refuse(capsys, *FIT, *arguments)
    assert not Path("model.mvcca").exists()
    assert not left_over()


def _with_nan():
    rows = np.load("text.npy")
    rows[33, 2] = np.nan
    np.save("text.npy", rows)


BROKEN = {
    "another height": (lambda: np.save("text.npy", np.ones((N - 1, 5))), "same number of rows"),
    "a missing value": (_with_nan, "View 'text'"),
    "a cut file": (lambda: os.truncate("text.npy", 900), "is truncated"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_files_that_cannot_be_fitted_are_one_line_and_leave_nothing(capsys, name):
    make, message = BROKEN[name]
    make()
    assert message in fail(capsys, *FIT, *CCA_2, "--block-rows", 10)
    assert not Path("model.mvcca").exists()
    assert not left_over()


def test_a_parameter_out_of_range_is_one_line(capsys):
    assert "must be a float in the range" in fail(
        capsys, *FIT, "--method", "cca", "--param", "reg=-1"
    )


# ---- interrupted fits ---------------------------------------------------------------------------

# A fit that keeps its statistic after every block, says so after the fifth, and waits there.
CHILD = """
import signal, sys, time
from mvcca.cli import main
from mvcca.statistics.passes import _checkpoint

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored
_checkpoint._SECONDS = 0
keep = _checkpoint._Keeper.keep

def keep_and_wait(self, state, done):
    keep(self, state, done)
    if done == 5:
        print("kept", flush=True)
        time.sleep(1000)

_checkpoint._Keeper.keep = keep_and_wait
if __name__ == "__main__":
    sys.exit(main())
"""


def signalled(arguments, number):
    """Exit code and standard error of a fit that gets a signal when five blocks are kept."""
    Path("child.py").write_text(CHILD)
    child = subprocess.Popen(
        [sys.executable, "child.py", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert child.stdout.readline() == "kept\n"
    os.killpg(child.pid, number)  # Ctrl-C reaches all processes of a terminal
    _, err = child.communicate(timeout=240)
    return child.returncode, err


def interrupt(monkeypatch, capsys, *arguments):
    """The standard error of a fit that is interrupted when three blocks are kept."""
    keep = _checkpoint._Keeper.keep

    def keep_and_stop(self, state, done):
        keep(self, state, done)
        if done == 3:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(_checkpoint, "_SECONDS", 0)
        patch.setattr(_checkpoint._Keeper, "keep", keep_and_stop)
        code, out, err = run(capsys, *arguments)
    assert (code, out) == (130, "")
    return err


METHODS_WITH_STATISTICS = {
    "cca": [*CCA_2],
    "mvmlcca": ["--method", "mvmlcca", "--labels", "y.npy", "--no-tune"],
}


@pytest.mark.slow  # starts processes
@pytest.mark.parametrize(
    ("method", "number"),
    [("cca", signal.SIGINT), ("cca", signal.SIGKILL), ("mvmlcca", signal.SIGKILL)],
)
def test_a_fit_that_was_ended_by_a_signal_resumes_to_the_same_bits(
    capsys, monkeypatch, method, number
):
    arguments = [*FIT, *METHODS_WITH_STATISTICS[method], "--block-rows", 6]
    run(capsys, *arguments)
    undisturbed = Path("model.mvcca").read_bytes()
    Path("model.mvcca").unlink()

    code, err = signalled(arguments, number)
    assert not Path("model.mvcca").exists()
    if number == signal.SIGINT:
        assert code == 130
        assert without_reads(err) == (
            "\nmvcca: interrupted: continue with --resume (model.mvcca.partial)\n"
        )

    kept = blocks_kept_by(monkeypatch, capsys, *arguments, "--resume")
    assert kept[0] == 6  # of ten blocks; the first five are not gone over again
    assert Path("model.mvcca").read_bytes() == undisturbed
    assert not left_over()


@pytest.mark.parametrize("method", METHODS_WITH_STATISTICS)
def test_an_interrupted_search_resumes_in_the_fold_where_it_was(capsys, monkeypatch, method):
    labels = METHODS_WITH_STATISTICS[method][2:4] if method == "mvmlcca" else []
    arguments = [*FIT, "--method", method, *labels, "--block-rows", 3]  # 5 folds of 4 blocks
    run(capsys, *arguments)
    undisturbed = Path("model.mvcca").read_bytes()
    Path("model.mvcca").unlink()
    interrupt(monkeypatch, capsys, *arguments)
    kept = blocks_kept_by(monkeypatch, capsys, *arguments, "--resume")
    assert kept[0] == 4
    assert Path("model.mvcca").read_bytes() == undisturbed
    assert not left_over()


def test_ctrl_c_before_anything_is_kept_leaves_nothing(capsys, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(_checkpoint._Keeper, "keep", interrupted)
    code, out, err = run(capsys, *FIT, *CCA_2)
    assert (code, out, err) == (130, "", "\nmvcca: interrupted\n")
    assert not Path("model.mvcca").exists()
    assert not left_over()


@pytest.mark.usefixtures("model")
def test_an_interrupted_fit_leaves_the_model_that_was_there(capsys, monkeypatch):
    before = Path("model.mvcca").read_bytes()
    interrupt(monkeypatch, capsys, *FIT, *CCA_2, "--block-rows", 6)
    assert Path("model.mvcca").read_bytes() == before


def _touch(name):
    np.save(name, np.load(name) + 1)


@pytest.mark.parametrize(
    ("change", "arguments", "what"),
    [
        (lambda: _touch("text.npy"), [], "--view text"),
        (lambda: np.save("y.npy", CLASSES[::-1]), [], "--labels"),
        (lambda: None, ["--block-rows", "7"], "--block-rows"),
        (lambda: None, ["--param", "sigma=2"], "--param"),
        (lambda: None, ["--method", "mlcca"], "--method"),
        (lambda: Path("model.mvcca.partial/fit.json").write_text("{"), [], "cannot be read"),
    ],
    ids=["view", "labels", "block rows", "parameter", "method", "damage"],
)
def test_only_the_same_fit_resumes(capsys, monkeypatch, change, arguments, what):
    command = [*FIT, *METHODS_WITH_STATISTICS["mvmlcca"], "--block-rows", 6]
    interrupt(monkeypatch, capsys, *command)
    change()
    err = fail(capsys, *command, *arguments, "--resume")
    assert what in err
    assert "omit --resume to start over" in err
    assert list(Path("model.mvcca.partial").glob("pass*.mvcca"))
    code, _, _ = run(capsys, *command, *arguments)
    assert code == 0
    assert not left_over()


def test_views_in_another_order_are_another_fit(capsys, monkeypatch):
    command = [*FIT, *CCA_2, "--block-rows", 6]
    interrupt(monkeypatch, capsys, *command)
    command[2], command[4] = command[4], command[2]
    assert "order of views" in fail(capsys, *command, "--resume")


def test_without_resume_a_fit_starts_over(capsys, monkeypatch):
    command = [*FIT, *CCA_2, "--block-rows", 6]
    interrupt(monkeypatch, capsys, *command)
    _touch("text.npy")
    succeed(capsys, *command)
    same_model(mvcca.load("model.mvcca"), CCA(2, reg=0.01).fit(arrays()))
    assert not left_over()


def test_a_fit_that_fails_keeps_what_it_has_added_up(capsys):
    np.save("text.npy", np.ones((N, 3)))
    assert "no variance" in fail(capsys, *FIT, *CCA_2, "--block-rows", 10)
    assert list(Path("model.mvcca.partial").glob("pass*.mvcca"))


def _interrupt_saving(patch):
    def interrupted(*_):
        raise KeyboardInterrupt

    patch.setattr("mvcca.cli.fit.save", interrupted)


def _interrupt_renaming(patch):
    replace = os.replace

    def interrupted(source, target):
        if Path(target).name == "model.mvcca":
            raise KeyboardInterrupt
        replace(source, target)

    patch.setattr(os, "replace", interrupted)


def _interrupt_dropping(patch):
    def interrupted(_):
        raise KeyboardInterrupt

    patch.setattr(_checkpoint._Folder, "discard", interrupted)


def blocks_kept_by(monkeypatch, capsys, *arguments):
    """Numbers of the blocks that a fit which goes well goes over and keeps."""
    kept, keep = [], _checkpoint._Keeper.keep
    with monkeypatch.context() as patch:
        patch.setattr(_checkpoint._Keeper, "keep", lambda *a: kept.append(a[-1]) or keep(*a))
        code, _, _ = run(capsys, *arguments)
    assert code == 0
    return kept


@pytest.mark.parametrize("method", METHODS_WITH_STATISTICS)
@pytest.mark.parametrize(
    ("stop", "is_written"),
    [(_interrupt_saving, False), (_interrupt_renaming, False), (_interrupt_dropping, True)],
    ids=["before the file", "before its name", "before the checkpoint goes"],
)
def test_a_fit_interrupted_after_its_last_block_goes_over_none_again(
    capsys, monkeypatch, method, stop, is_written
):
    arguments = [*FIT, *METHODS_WITH_STATISTICS[method], "--block-rows", 6]
    assert blocks_kept_by(monkeypatch, capsys, *arguments)
    undisturbed = Path("model.mvcca").read_bytes()
    Path("model.mvcca").unlink()

    with monkeypatch.context() as patch:
        stop(patch)
        code, out, err = run(capsys, *arguments)
    assert (code, out) == (130, "")
    assert err.endswith("\nmvcca: interrupted: continue with --resume (model.mvcca.partial)\n")
    assert Path("model.mvcca").exists() == is_written

    assert not blocks_kept_by(monkeypatch, capsys, *arguments, "--resume")
    assert Path("model.mvcca").read_bytes() == undisturbed
    assert not left_over()


def test_a_disk_too_full_for_the_model_does_not_cost_the_fit(capsys, monkeypatch):
    arguments = [*FIT, *CCA_2, "--block-rows", 6]
    assert blocks_kept_by(monkeypatch, capsys, *arguments)
    undisturbed = Path("model.mvcca").read_bytes()
    Path("model.mvcca").write_text("the old one")

    def save_on_full_disk(model, path):
        with full_disk(700):
            mvcca.save(model, path)

    with monkeypatch.context() as patch:
        patch.setattr("mvcca.cli.fit.save", save_on_full_disk)
        err = fail(capsys, *arguments)
    assert "too large" in err
    assert err.endswith("; continue with --resume (model.mvcca.partial)\n")
    assert Path("model.mvcca").read_text() == "the old one"

    assert not blocks_kept_by(monkeypatch, capsys, *arguments, "--resume")
    assert Path("model.mvcca").read_bytes() == undisturbed
    assert not left_over()


def test_a_training_that_fails_in_its_first_epoch_leaves_nothing(capsys):
    pytest.importorskip("torch")
    rows = np.load("text.npy")
    rows[33, 2] = 1e60
    np.save("text.npy", rows)
    arguments = [*FIT, "--method", "soft-cca", "--hidden", "4", "--epochs", 2]
    arguments += ["--param", "start=random"]
    assert "beyond the largest float32" in fail(capsys, *arguments)
    assert not left_over()


def test_resume_without_a_checkpoint_says_so_and_fits(capsys):
    code, out, err = run(capsys, *FIT, *CCA_2, "--resume")
    assert code == 0
    assert "canonical correlations" in out
    assert err == "mvcca: warning: nothing to resume in model.mvcca.partial: starting over\n"


def test_a_folder_that_is_no_checkpoint_is_not_removed(capsys):
    Path("model.mvcca.partial").mkdir()
    Path("model.mvcca.partial/thesis.tex").write_text("years of work")
    err = fail(capsys, *FIT, *CCA_2)
    assert "expected a checkpoint, found thesis.tex" in err
    assert Path("model.mvcca.partial/thesis.tex").read_text() == "years of work"


def test_a_mistake_in_the_command_does_not_cost_the_checkpoint(capsys, monkeypatch):
    command = [*FIT, *CCA_2, "--block-rows", 6]
    interrupt(monkeypatch, capsys, *command)
    fail(capsys, *[text.replace("text.npy", "texts.npy") for text in map(str, command)])
    succeed(capsys, *command, "--resume")


# ---- workers ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_two_workers_give_the_model_of_none(capsys):
    pytest.importorskip("distributed")
    command = [*FIT, *CCA_2, "--block-rows", 10]
    succeed(capsys, *command)
    alone = mvcca.load("model.mvcca")
    Path("model.mvcca").unlink()
    answer = subprocess.run(
        [sys.executable, "-m", "mvcca", *map(str, command), "--workers", "2"],
        capture_output=True,
        text=True,
    )
    assert (answer.returncode, without_reads(answer.stderr)) == (0, "")
    same_model(mvcca.load("model.mvcca"), alone)


@pytest.mark.slow  # starts processes
def test_ctrl_c_ends_the_workers_without_a_word_from_them():
    pytest.importorskip("distributed")
    command = [*FIT, *CCA_2, "--block-rows", 6, "--workers", 1]
    code, err = signalled(command, signal.SIGINT)
    assert code == 130
    assert without_reads(err) == (
        "\nmvcca: interrupted: continue with --resume (model.mvcca.partial)\n"
    )


def test_a_device_gives_the_model_of_none(capsys):
    pytest.importorskip("torch")
    command = [*FIT, *CCA_2, "--block-rows", 10]
    succeed(capsys, *command)
    alone = mvcca.load("model.mvcca")
    succeed(capsys, *command, "--device", "torch:cpu")
    same_model(mvcca.load("model.mvcca"), alone)


def test_an_unknown_device_is_one_line_and_does_not_cost_the_checkpoint(capsys, monkeypatch):
    command = [*FIT, *CCA_2, "--block-rows", 6]
    interrupt(monkeypatch, capsys, *command)
    assert "got 'tpu'" in fail(capsys, *command, "--device", "tpu")
    succeed(capsys, *command, "--resume")
    assert "not allowed with" in refuse(capsys, *command, "--device", "cuda", "--workers", 2)


def test_without_distributed_the_extra_is_named(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    for where in (["--workers", 2], ["--scheduler", "tcp://host:8786"]):
        err = fail(capsys, *FIT, *CCA_2, *where)
        assert "Workers need dask.distributed: pip install 'mvcca[distributed]'" in err
    assert not left_over()


def test_a_scheduler_that_does_not_answer_is_named(capsys, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("mvcca.statistics.passes._workers._SECONDS", 0.3)
    err = fail(capsys, *FIT, *CCA_2, "--scheduler", "tcp://127.0.0.1:1")
    assert "tcp://127.0.0.1:1" in err


# ---- transform ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("block_rows", [1, 7, 1000])
def test_scores_are_those_of_the_library_whatever_the_blocks(capsys, model, dtype, block_rows):
    rows = np.load("text.npy").astype(dtype)
    np.save("query.npy", rows)
    command = ["transform", "model.mvcca", "--view", "text=query.npy", "-o", "scores.npy"]
    out = succeed(capsys, *command, "--block-rows", block_rows)
    assert out == f"scores.npy: {N} rows, 2 components\n"
    scores = np.load("scores.npy")
    assert scores.dtype == dtype
    expected = model.transform({"text": rows})["text"]
    np.testing.assert_allclose(scores, expected, atol=1e-5 if dtype == np.float32 else 1e-12)


def test_scores_of_several_views_go_to_a_file_each(capsys, model):
    pandas = pytest.importorskip("pandas")
    views = ["--view", "image=image.npy", "--view", "text=text.npy"]
    command = ["transform", "model.mvcca", *views, "--block-rows", 25]
    out = succeed(capsys, *command, "-o", "{view} scores.parquet")
    assert out.splitlines() == [
        f"{name} scores.parquet: {N} rows, 2 components" for name in ("image", "text")
    ]
    for name, expected in model.transform(arrays()).items():
        table = pandas.read_parquet(f"{name} scores.parquet")
        assert list(table) == ["vector"]
        np.testing.assert_allclose(np.stack(table["vector"]), expected, atol=1e-12)


@pytest.mark.usefixtures("model")
def test_a_transform_holds_a_block_and_not_the_file(capsys):
    n_rows = 100_000
    np.save("tall.npy", np.random.default_rng(0).standard_normal((n_rows, 5)))
    command = ["transform", "model.mvcca", "--block-rows", 1000, "-o", "scores.npy"]
    succeed(capsys, *command, "--view", "text=text.npy")  # what is imported stays
    tracemalloc.start()
    try:
        succeed(capsys, *command, "--view", "text=tall.npy")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert np.load("scores.npy", mmap_mode="r").shape == (n_rows, 2)
    assert peak < n_rows * 5 * 8 / 5


@pytest.mark.parametrize("weighting", ["likelihood", "likelihood-cosine", "correlation^2", "none"])
@pytest.mark.usefixtures("queries")
def test_vectors_of_any_weighting_rank_as_the_search_does(capsys, weighting):
    command = ["transform", "model.mvcca", "--weighting", weighting, "--vectors"]
    succeed(capsys, *command, "gallery", "--view", "image=image.npy", "-o", "items.npy")
    asked = ["--view", "text=query.npy", "-o", "asked.npy"]
    if weighting == "likelihood":
        assert "give it by --target" in fail(capsys, *command, "query", *asked)
    succeed(capsys, *command, "query", *asked, "--target", "image")
    items, scores = best(products(np.load("asked.npy"), np.load("items.npy")), 5)
    succeed(capsys, *SEARCH, "--weighting", weighting, "-k", 5, "-o", "hits.npz")
    with np.load("hits.npz") as hits:
        assert (hits["items"] == items).all()
        np.testing.assert_allclose(hits["scores"], scores, atol=1e-9)


@pytest.mark.usefixtures("queries")
def test_weighting_without_vectors_is_a_usage_error(capsys):
    command = ["transform", "model.mvcca", "--view", "text=query.npy", "-o", "scores.npy"]
    for option in (("--weighting", "none"), ("--similarity", "inner"), ("--target", "image")):
        assert (
            "--weighting, --query-view, --target and --similarity are those of --vectors"
            in refuse(capsys, *command, *option)
        )


# ---- search -------------------------------------------------------------------------------------


def cosines(queries, gallery):
    return np.array(
        [[q @ g / np.linalg.norm(q) / np.linalg.norm(g) for g in gallery] for q in queries]
    )


def distances(queries, gallery):
    return np.array([[-np.linalg.norm(q - g) for g in gallery] for q in queries])


def products(queries, gallery):
    return np.array([[q @ g for g in gallery] for q in queries])


def best(scores, k):
    """Items and scores of the k largest of every row."""
    items = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return items, np.take_along_axis(scores, items, axis=1)


def read_hits(name):
    """Lines of hits, as numbers and names."""
    if name.endswith(".parquet"):
        return pytest.importorskip("pandas").read_parquet(name).to_dict("records")
    with open(name, newline="") as file:
        lines = list(csv.DictReader(file))
    kinds = {"query": int, "rank": int, "view": str, "item": int, "score": float}
    return [{key: kinds[key](text) for key, text in line.items()} for line in lines]


SEARCH = ("search", "model.mvcca", "--gallery", "image=image.npy", "--query", "text=query.npy")


@pytest.fixture
def queries(model):
    """Projected queries and gallery."""
    np.save("query.npy", np.load("text.npy")[:9])
    scores = model.transform(arrays())
    return scores["text"][:9], scores["image"]


@pytest.fixture
def weighted(model, queries):
    """Queries and gallery as the model ranks them if no similarity is named."""
    scores = retrieval_vectors(model, arrays())
    return scores["text"][: len(queries[0])], scores["image"]


@pytest.mark.parametrize("name", ["hits.csv", "hits.parquet"])
@pytest.mark.parametrize(
    ("similarity", "score"), [("cosine", cosines), ("euclidean", distances), ("inner", products)]
)
def test_hits_are_those_of_sorting_all_scores(capsys, queries, name, similarity, score):
    out = succeed(
        capsys, *SEARCH, "-k", 4, "--similarity", similarity, "--block-rows", 4, "-o", name
    )
    assert out == f"{name}: 4 hits for each of 9 queries\n"
    items, scores = best(score(*queries), 4)
    lines = read_hits(name)
    assert [(line["query"], line["rank"]) for line in lines] == [
        (query, rank) for query in range(9) for rank in range(1, 5)
    ]
    assert [line["item"] for line in lines] == items.ravel().tolist()
    np.testing.assert_allclose([line["score"] for line in lines], scores.ravel(), atol=1e-9)


@pytest.mark.usefixtures("queries")
def test_hits_without_an_output_are_printed(capsys):
    succeed(capsys, *SEARCH, "-k", 3, "-o", "hits.csv")
    assert succeed(capsys, *SEARCH, "-k", 3) == Path("hits.csv").read_text()


def test_hits_as_arrays_are_those_of_the_table(capsys, weighted):
    items, scores = best(products(*weighted), 10)
    succeed(capsys, *SEARCH, "--block-rows", 2, "-o", "hits.npy")
    succeed(capsys, *SEARCH, "--block-rows", 2, "-o", "hits.npz")
    assert (np.load("hits.npy") == items).all()
    with np.load("hits.npz") as hits:
        assert sorted(hits.files) == ["items", "scores"]
        assert (hits["items"] == items).all()
        np.testing.assert_allclose(hits["scores"], scores, atol=1e-9)


def test_rows_of_several_galleries_are_items_of_their_own(capsys, weighted):
    projected, images = weighted
    gallery = np.concatenate([images, projected])
    items, _ = best(products(projected, gallery), 5)
    expected = [("image", i) if i < N else ("text", i - N) for i in items.ravel().tolist()]
    command = [*SEARCH, "--gallery", "text=query.npy", "-k", 5]
    succeed(capsys, *command, "-o", "hits.csv")
    assert [(line["view"], line["item"]) for line in read_hits("hits.csv")] == expected
    succeed(capsys, *command, "-o", "hits.npz")
    with np.load("hits.npz") as hits:
        found = zip(hits["views"].ravel().tolist(), hits["items"].ravel().tolist(), strict=True)
        assert list(found) == expected
    assert "cannot tell which gallery" in refuse(capsys, *command, "-o", "hits.npy")


def test_hits_are_corrected_for_hubs_with_a_bank_of_each_view(capsys, weighted):
    queries, images = weighted
    bank = ["--bank", "text=text.npy", "--bank", "image=image.npy"]
    banks = retrieval_vectors(mvcca.load("model.mvcca"), arrays())
    command = [*SEARCH, "--hubness", "csls", *bank, "--block-rows", 4, "-k", 5]
    succeed(capsys, *command, "-o", "hits.npz")
    expected = [
        top_k(queries, rows, 5, "inner", hubness="csls", bank=(banks["text"], banks[name]))
        for name, rows in (("image", images), ("text", queries))
    ]
    with np.load("hits.npz") as hits:
        assert (hits["items"] == expected[0][1]).all()
        np.testing.assert_allclose(hits["scores"], expected[0][0], atol=1e-9)
    succeed(capsys, *command, "--gallery", "text=query.npy", "-o", "hits.npz")
    scores, items = (np.hstack(parts) for parts in zip(*expected, strict=True))
    views = np.repeat(["image", "text"], 5)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :5]
    with np.load("hits.npz") as hits:
        assert (hits["items"] == np.take_along_axis(items, order, 1)).all()
        assert (hits["views"] == views[order]).all()


@pytest.mark.usefixtures("queries")
def test_hubness_and_a_bank_are_used_together(capsys):
    for option in (["--hubness", "csls"], ["--bank", "text=text.npy"]):
        assert "--hubness and --bank are used together" in refuse(capsys, *SEARCH, *option)
    err = fail(capsys, *SEARCH, "--hubness", "csls", "--bank", "text=text.npy")
    assert "needs bank rows of view 'image'" in err


@pytest.mark.usefixtures("queries")
def test_queries_in_several_views_are_added(capsys, model):
    rho = model.expected_correlations_
    texts, images = (model.transform(arrays())[name] for name in ("text", "image"))
    w, v = rho / (1 - rho**2), rho**2 / (1 - rho**2)
    np.save("images.npy", np.load("image.npy")[:9])
    succeed(capsys, *SEARCH, "--query", "image=images.npy", "-k", 3, "-o", "hits.npy")
    queries = texts[:9] + images[:9]
    ratios = (queries * w) @ images.T / np.sqrt(images**2 @ v)
    items, _ = best(ratios, 3)
    assert (np.load("hits.npy") == items).all()
    err = fail(capsys, *SEARCH, "--query", "image=image.npy")
    assert "same number of rows, got text 9, image 60" in err


def test_galleries_searched_as_one_are_sums_too(capsys, queries):
    texts, images = queries[0], queries[1][:9]
    np.save("images.npy", np.load("image.npy")[:9])
    galleries = ["--gallery", "image=images.npy", "--gallery", "text=query.npy", "--joint"]
    joint = [*SEARCH[:2], *galleries, *SEARCH[4:], "--similarity", "inner"]
    expected, scores = best(products(texts, texts + images), 4)
    succeed(capsys, *joint, "-k", 4, "-o", "hits.npz")
    with np.load("hits.npz") as hits:
        assert sorted(hits.files) == ["items", "scores"]
        assert (hits["items"] == expected).all()
        np.testing.assert_allclose(hits["scores"], scores, atol=1e-9)
    both = [*joint, "--query", "image=images.npy"]
    succeed(capsys, *both, "-k", 4, "-o", "hits.npy")
    items, _ = best(products(texts + images, texts + images), 4)
    assert (np.load("hits.npy") == items).all()
    assert "k 10: there are only 9 items" in fail(capsys, *both, "-o", "hits.npy")
    succeed(capsys, *joint[:-2], "-k", 4, "-o", "hits.npy")  # by the weighting of the method
    index = mvcca.RetrievalIndex(mvcca.load("model.mvcca"))
    index.add({"image": np.load("images.npy"), "text": np.load("query.npy")})
    _, items = index.search({"text": np.load("query.npy")}, ["image", "text"], k=4)
    assert (np.load("hits.npy") == items).all()
    joint[3] = "image=image.npy"
    assert "same number of rows, got image 60, text 9" in fail(capsys, *joint)


# ---- info ---------------------------------------------------------------------------------------


def test_info_says_what_was_fitted(capsys, model):
    found = json.loads(succeed(capsys, "info", "model.mvcca", "--json"))
    assert found["method"] == "CCA"
    assert found["parameters"] == model.get_params()
    assert (found["parameters"]["n_components"], found["parameters"]["reg"]) == (2, 0.01)
    assert found["views"] == {"image": 6, "text": 5}
    assert found["n_components"] == 2
    assert found["canonical_correlations"] == model.canonical_correlations_.tolist()
    assert found["bytes"] == os.path.getsize("model.mvcca")
    assert found["written_by"]["mvcca"] == mvcca.__version__
    out = succeed(capsys, "info", "model.mvcca")
    first, second = model.canonical_correlations_
    of = r"\(of the fitted rows; smaller on new rows\)"
    line = rf"^canonical correlations +{first:.3f} {second:.3f} {of}$"
    assert re.search(line, out, re.M)
    assert re.search(r"^parameters +.*n_components=2, reg=0.01", out, re.M)


@pytest.mark.usefixtures("model")
def test_info_needs_no_scikit_learn():
    program = (
        "import sys\nfrom mvcca.cli import main\nmain(['info', 'model.mvcca'])\n"
        "assert not {'sklearn', 'scipy', 'numba', 'pandas', 'joblib'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_only_a_process_of_its_own_keeps_imported_objects_from_the_garbage_collector(monkeypatch):
    before = gc.get_freeze_count()
    assert main(["methods"]) == 0
    assert gc.get_freeze_count() == before
    monkeypatch.setattr(sys, "argv", ["mvcca", "methods"])
    try:
        assert main() == 0
        assert gc.get_freeze_count() > before
        assert gc.isenabled()
    finally:
        gc.unfreeze()


@pytest.mark.slow  # starts processes
@pytest.mark.usefixtures("model")
def test_search_and_transform_by_affine_maps_need_neither_scikit_learn_nor_numba():
    for line in (
        "search model.mvcca --gallery image=image.npy --query text=text.npy -k 2 -o hits.csv",
        "transform model.mvcca --view image=image.npy -o scores.npy",
    ):
        program = (
            f"import sys\nfrom mvcca.cli import main\nassert main({line.split()}) == 0\n"
            "assert not {'sklearn', 'numba', 'pandas', 'joblib'} & sys.modules.keys()"
        )
        subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.usefixtures("model")
def test_info_reads_files_of_versions_that_kept_no_description(capsys):
    arrays, content = read_archive("model.mvcca")
    del content["description"]
    write_archive("other.mvcca", arrays, content)
    said = [succeed(capsys, "info", f"{name}.mvcca").splitlines() for name in ("model", "other")]
    new, old = (
        [line for line in lines if "mvcca" not in line and "bytes" not in line] for lines in said
    )
    assert new == old
    assert len(new) > 4


@pytest.mark.parametrize("said", ["null", "[]", "{}", "3", "{", '{"method": "CCA", "views": 3}'])
@pytest.mark.usefixtures("model")
def test_info_refuses_a_file_that_does_not_say_what_it_holds(capsys, said):
    arrays, content = read_archive("model.mvcca")
    write_archive("forged.mvcca", arrays, content | {"description": said})
    assert "does not say what it holds" in fail(capsys, "info", "forged.mvcca")


def test_info_names_long_parameters_by_their_size(capsys):
    mvcca.save(CCA(2, reg={f"view {i}": 0.1 for i in range(500)}), "many.mvcca")
    assert "reg='dict of 500'" in succeed(capsys, "info", "many.mvcca")


def test_info_says_what_an_index_holds(capsys, model):
    index = mvcca.RetrievalIndex(model, "euclidean").add({"image": arrays()["image"]})
    mvcca.save(index, "index.mvcca")
    found = json.loads(succeed(capsys, "info", "index.mvcca", "--json"))
    assert found["method"] == "RetrievalIndex"
    assert found["parameters"] == {"similarity": "euclidean", "backend": "exact"}
    assert found["rows"] == {"image": len(arrays()["image"])}
    out = succeed(capsys, "info", "index.mvcca")
    assert re.search(rf"^estimator +{re.escape(repr(model))}$", out, re.M)
    assert re.search(rf"^gallery +image \({len(arrays()['image'])} rows\)$", out, re.M)
    mvcca.save(mvcca.RetrievalIndex(model), "empty.mvcca")
    assert re.search(r"^gallery +empty$", succeed(capsys, "info", "empty.mvcca"), re.M)


def test_info_says_what_a_search_chose(capsys):
    search = GridSearchCV(CCA(2), {"reg": [0.01, 0.1]}, cv=2).fit(mvcca.Views(arrays()))
    mvcca.save(search, "search.mvcca")
    found = json.loads(succeed(capsys, "info", "search.mvcca", "--json"))
    assert (found["method"], found["n_components"]) == ("GridSearchCV", 2)
    assert found["best_estimator"] == repr(search.best_estimator_)
    out = succeed(capsys, "info", "search.mvcca")
    assert re.search(rf"^best estimator +{re.escape(repr(search.best_estimator_))}$", out, re.M)


def test_a_model_that_was_not_fitted_says_so(capsys):
    mvcca.save(CCA(2), "model.mvcca")
    assert re.search(r"^views +not fitted$", succeed(capsys, "info", "model.mvcca"), re.M)
    command = ["transform", "model.mvcca", "--view", "text=text.npy", "-o", "s.npy"]
    assert "not fitted" in fail(capsys, *command)


# ---- errors of all commands that take a model ---------------------------------------------------

READERS = {
    "transform": ["--view", "text=text.npy", "-o", "out.npy"],
    "search": ["--gallery", "image=image.npy", "--query", "text=text.npy", "-o", "out.npy"],
    "info": [],
}


def _damage():
    content = bytearray(Path("model.mvcca").read_bytes())
    content[-9] ^= 1
    Path("model.mvcca").write_bytes(content)


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize("command", READERS)
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: os.remove("model.mvcca"), "model.mvcca: no such file"),
        (_damage, "does not match its checksum"),
        (lambda: os.truncate("model.mvcca", 100), "model.mvcca"),
        (
            lambda: mvcca.save(mvcca.RetrievalIndex(mvcca.load("model.mvcca")), "model.mvcca"),
            "a RetrievalIndex",
        ),
    ],
    ids=["absent", "damaged", "cut", "an index"],
)
def test_a_file_that_holds_no_model_is_named(capsys, command, make, message):
    make()
    if command == "info" and "Index" in message:
        assert "RetrievalIndex" in succeed(capsys, "info", "model.mvcca")
        return
    assert message in fail(capsys, command, "model.mvcca", *READERS[command])
    assert not Path("out.npy").exists()


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize(
    ("view", "message"),
    [
        ("text=image.npy", "image.npy: View 'text' has 6 features, but CCA is expecting 5"),
        ("sound=text.npy", "Unknown view 'sound'"),
        ("text=absent.npy", "absent.npy: no such file"),
    ],
)
def test_rows_that_the_model_does_not_take_are_one_line(capsys, view, message):
    command = ["transform", "model.mvcca", "--view", view, "-o", "out.npy"]
    assert message in fail(capsys, *command)
    err = fail(capsys, "search", "model.mvcca", "--gallery", view, "--query", view)
    assert message.removeprefix("image.npy: ") in err
    assert not Path("out.npy").exists()


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--view", "text=text.npy", "-o", "out.txt"],
            "ending in .npy, .npz, .parquet, .arrow or .csv",
        ),
        (["--view", "text=text.npy", "-o", "text.npy"], "text.npy: this is an input"),
        (["--view", "text=text.npy", "-o", "none/out.npy"], "its directory none does not exist"),
    ],
)
def test_an_output_that_cannot_be_is_refused_before_the_work(capsys, arguments, message):
    before = Path("text.npy").read_bytes()
    assert message in fail(capsys, "transform", "model.mvcca", *arguments)
    assert Path("text.npy").read_bytes() == before


@pytest.mark.usefixtures("model")
def test_two_views_without_a_place_for_their_name_are_a_usage_error(capsys):
    views = ["--view", "image=image.npy", "--view", "text=text.npy"]
    assert "scores-{view}.npy" in refuse(
        capsys, "transform", "model.mvcca", *views, "-o", "out.npy"
    )


@pytest.mark.usefixtures("queries")
def test_more_hits_than_items_are_refused(capsys):
    assert "k 61: there are only 60 items" in fail(capsys, *SEARCH, "-k", 61)


# ---- outputs are whole or not there -------------------------------------------------------------

WRITERS = {
    "fit": [*FIT, *CCA_2, "--block-rows", 6],
    "transform to .npy": ["transform", "model.mvcca", "--view", "text=tall.npy", "-o", "out.npy"],
    "transform to .parquet": [
        *["transform", "model.mvcca", "--view", "text=tall.npy", "-o", "out.parquet"]
    ],
    "search": [*SEARCH, "-k", "60", "-o", "out.csv"],
    "search to .npz": [*SEARCH, "-k", "60", "-o", "out.npz"],
}


@contextmanager
def full_disk(n_bytes):
    """Files cannot grow above some bytes, as on a disk that is full."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.usefixtures("queries")
@pytest.mark.parametrize("name", WRITERS)
def test_a_full_disk_leaves_the_old_file_and_no_rest(capsys, name):
    np.save("tall.npy", np.random.default_rng(0).normal(size=(2000, 5)))
    command = WRITERS[name]
    output = Path(command[command.index("-o") + 1])
    if output.suffix == ".parquet":
        pytest.importorskip("pyarrow")
    if name != "fit":
        output.write_text("the old one")
    before = output.read_bytes()
    with full_disk(700):
        err = fail(capsys, *command)
    assert "too large" in err
    assert output.read_bytes() == before
    assert not left_over()


@pytest.mark.usefixtures("model")
def test_a_missing_value_in_the_middle_is_named_and_leaves_the_old_file(capsys):
    _with_nan()
    Path("scores.npy").write_text("the old one")
    command = ["transform", "model.mvcca", "--view", "text=text.npy", "--block-rows", 10]
    err = fail(capsys, *command, "-o", "scores.npy")
    assert err.startswith("mvcca: error: text.npy, rows 30 to 40: View 'text': ")
    assert Path("scores.npy").read_text() == "the old one"
    assert not left_over()


@pytest.mark.usefixtures("model")
def test_of_several_outputs_none_appears_when_one_fails(capsys):
    _with_nan()
    views = ["--view", "image=image.npy", "--view", "text=text.npy"]
    fail(capsys, "transform", "model.mvcca", *views, "-o", "{view}-scores.npy")
    assert not list(Path().glob("*scores*"))


@pytest.mark.usefixtures("model")
def test_ctrl_c_while_writing_leaves_nothing(capsys, monkeypatch):
    project, blocks = ProjectedRows._scores, []

    def interrupted(self, block, where):
        blocks.append(block)
        if len(blocks) == 4:
            raise KeyboardInterrupt
        return project(self, block, where)

    monkeypatch.setattr(ProjectedRows, "_scores", interrupted)
    command = ["transform", "model.mvcca", "--view", "text=text.npy", "--block-rows", 10]
    code, out, err = run(capsys, *command, "-o", "scores.npy")
    assert (code, out, err) == (130, "", "\nmvcca: interrupted\n")
    assert not list(Path().glob("*scores*"))


# ---- names of columns ---------------------------------------------------------------------------


def _with_names(name, rows, names):
    """Write rows with named columns, in the format of the file's ending."""
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(rows, columns=list(names))
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow")
        frame.to_parquet(name)
    else:
        frame.to_csv(name, index=False, sep="\t" if name.endswith(".tsv") else ",")


NAMED = ("rows.csv", "rows.tsv", "rows.parquet")


@pytest.mark.parametrize("asked", NAMED)
@pytest.mark.parametrize("fitted", NAMED)
def test_columns_are_known_by_name_whatever_the_format(capsys, fitted, asked):
    rows, names = np.load("image.npy"), list("abcdef")
    _with_names(fitted, rows, names)
    views = ("--view", f"image={fitted}", "--view", "text=text.npy")
    succeed(capsys, "fit", *views, *CCA_2, "-o", "named.mvcca", "--header", "yes")
    _with_names(asked, rows, names)
    ask = ("transform", "named.mvcca", "--header", "yes", "--view", f"image={asked}")
    succeed(capsys, *ask, "-o", "right.npy")
    expected = CCA(2, reg=0.01).fit(arrays()).transform(arrays())["image"]
    np.testing.assert_allclose(np.load("right.npy"), expected, atol=1e-9)
    _with_names(asked, rows[:, ::-1], names[::-1])  # the same rows, columns swapped
    for command in (
        (*ask, "-o", "wrong.npy"),
        ("search", "named.mvcca", "--gallery", "text=text.npy", "--query", f"image={asked}"),
    ):
        err = fail(capsys, *command[:2], "--header", "yes", *command[2:])
        assert (asked if command[0] == "transform" else "queries 0 to 60: ") in err
        assert "the same names in a different order" in err
    _with_names(asked, rows, [*names[:-1], "z"])
    assert "'z'" in fail(capsys, *ask, "-o", "x.npy")
    assert not Path("wrong.npy").exists()


def test_rows_without_names_of_columns_go_by_their_order(capsys):
    _with_names("rows.csv", np.load("image.npy"), "abcdef")
    views = ("--view", "image=rows.csv", "--view", "text=text.npy")
    succeed(capsys, "fit", *views, *CCA_2, "-o", "named.mvcca", "--header", "yes")
    succeed(capsys, "transform", "named.mvcca", "--view", "image=image.npy", "-o", "scores.npy")
    expected = CCA(2, reg=0.01).fit(arrays()).transform(arrays())["image"]
    np.testing.assert_allclose(np.load("scores.npy"), expected, atol=1e-9)


def _numbers(kind, shape, rng):
    if kind == "decimals":
        return rng.standard_normal(shape)
    if kind == "whole numbers":
        return rng.integers(-5, 90, shape)
    if kind == "whole decimals":  # 3.0
        return rng.integers(0, 9, shape).astype(float)
    return 10.0 ** rng.integers(-20, 20, shape)  # 1e-05


@pytest.mark.parametrize("kind", ["decimals", "whole numbers", "whole decimals", "powers"])
@pytest.mark.parametrize(
    "columns", ["default", "from one", "chosen", "words", "comma, quote and line"]
)
def test_what_pandas_writes_is_read_as_it_is(kind, columns):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    for width in (1, 2, 3, 12):
        rows = _numbers(kind, (7, width), rng)
        names = {
            "default": list(range(width)),
            "from one": list(range(1, width + 1)),
            "chosen": sorted(rng.choice(100, width, replace=False).tolist()),
            "words": [f"x{i}" for i in range(width)],
            "comma, quote and line": [f'{i}, "one"\ntwo' for i in range(width)],
        }[columns]
        numbers = columns in ("from one", "chosen")
        if (numbers and (width < 3 or kind != "decimals")) or (columns, width) == ("default", 1):
            continue  # could as well be a row, and is read as one
        pd.DataFrame(rows, columns=names).to_csv("rows.csv", index=False)
        found = read_whole("rows.csv").matrix
        np.testing.assert_array_equal(found, rows)
        assert found.columns == tuple(map(str, names))
        np.savetxt("bare.csv", rows, delimiter=",", fmt="%.17g")
        bare = read_whole("bare.csv").matrix
        assert bare.shape == rows.shape  # and a file without names has none


def _csv_of(rows, first=""):
    return first + "".join(",".join(map(repr, row)) + "\n" for row in rows.tolist())


SEARCH_CSV = ("search", "model.mvcca", "--gallery", "image=rows.csv", "--query", "text=text.npy")


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize("cell", ["NA", "-", "0x10", "", "n/a", "<NA>", "NULL", "?"])
def test_a_missing_value_in_the_first_cell_is_a_value(capsys, cell):
    lines = _csv_of(np.load("image.npy")).splitlines()
    lines[0] = ",".join([cell, *lines[0].split(",")[1:]])
    Path("rows.csv").write_text("\n".join(lines))
    message = "1 of 360 values are missing, first in line 1, column 1"
    if cell == "0x10":
        message = "expected a number in line 1, column 1, got '0x10'"
    assert message in fail(capsys, *SEARCH_CSV)
    assert message in fail(capsys, *SEARCH_CSV, "--header", "no")
    Path("y.csv").write_text("\n".join([cell or '""', *map(str, CLASSES[1:])]))
    message = message.replace("360", "60")
    labels = ("--labels", "y.csv", "--method", "mlcca")
    assert message in fail(capsys, *FIT, *labels)


@pytest.mark.usefixtures("model")
def test_the_line_of_a_header_is_no_item(capsys):
    _, expected, _ = run(capsys, *SEARCH_CSV[:3], "image=image.npy", *SEARCH_CSV[4:])
    rows = np.load("image.npy")
    for names in ("a,b,c,d,e,f\n", "0,1,2,3,4,5\n", "sum,2019,2020,2021,2022,2023\n", ""):
        Path("rows.csv").write_text(_csv_of(rows, names))
        assert succeed(capsys, *SEARCH_CSV) == expected
        assert succeed(capsys, *SEARCH_CSV, "--header", "yes" if names else "no") == expected


@pytest.mark.usefixtures("model")
def test_a_first_line_of_names_and_numbers_is_left_to_the_user(capsys):
    rows = np.load("image.npy")
    Path("rows.csv").write_text(_csv_of(rows, "sum,2019,2020.5,2021,2022,2023\n"))
    _, expected, _ = run(capsys, *SEARCH_CSV[:3], "image=image.npy", *SEARCH_CSV[4:])
    assert "may be a header or a row of numbers with a bad cell" in fail(capsys, *SEARCH_CSV)
    assert "got 'sum'" in fail(capsys, *SEARCH_CSV, "--header", "no")
    assert succeed(capsys, *SEARCH_CSV, "--header", "yes") == expected


def test_every_command_that_reads_csv_takes_the_users_word_for_a_header(capsys):
    names = "0,1,2,3,4,5\n"
    rows = np.load("image.npy")
    Path("image.csv").write_text(_csv_of(rows, names))
    Path("text.csv").write_text(_csv_of(np.load("text.npy"), "0,1,2,3,4\n"))
    Path("y.csv").write_text("0\n" + "".join(f"{c}\n" for c in CLASSES))
    Path("ids.csv").write_text("id\n" + "".join(f"row {i}\n" for i in range(N)))
    Path("sample.csv").write_text("0\n" + "".join(f"{i}\n" for i in range(N)))
    views = ("--view", "image=image.csv", "--view", "text=text.csv")
    fit = ("--method", "mlcca", "--param", "n_components=2", "-o", "csv.mvcca")
    compare = (*COMPARE_2, "cca")
    commands = [
        ("fit", *views, *fit, "--labels", "y.csv"),
        ("compare", *views, *compare, "--labels", "y.csv", "--ids", "ids.csv"),
        ("transform", "csv.mvcca", *views[:2], "--ids", "ids.csv", "-o", "s.csv"),
        ("search", "csv.mvcca", "--gallery", "image=image.csv", "--query", "text=text.csv"),
        ("migrate", "image.csv", "text.csv", "--sample", "sample.csv", "-o", "new.npy"),
    ]
    for command in commands:
        out = succeed(capsys, *command, "--header", "yes")
        if command[0] == "compare":
            assert "--header yes" in out.splitlines()[-1]  # the next command reads the same files
    np.testing.assert_allclose(mvcca.load("csv.mvcca").means_["image"], rows.mean(0))
    with open("s.csv", newline="") as file:
        assert [row["id"] for row in csv.DictReader(file)] == [f"row {i}" for i in range(N)]
    succeed(capsys, *commands[3], "--header", "no")
    assert f"got {N + 1}" in fail(capsys, *commands[2][:3], "image=image.npy", *commands[2][4:-2],
                                  "-o", "new.csv", "--header", "no")  # fmt: skip


@pytest.mark.usefixtures("model")
def test_the_number_of_rows_tells_a_header_of_ids(capsys):
    transform = ("transform", "model.mvcca", "--view", "text=text.npy", "-o", "s.csv")
    for first in ("", "id\n", "NA\n"):
        ids = [f"{i:03d}" for i in range(N)]
        Path("ids.csv").write_text(first + "\n".join(ids))
        code, _, err = run(capsys, *transform, "--ids", "ids.csv")
        assert code == 0
        assert ("line 1 ('NA') is read as a header" in err) == (first == "NA\n")
        with open("s.csv", newline="") as file:
            assert [row["id"] for row in csv.DictReader(file)] == ids
    Path("ids.csv").write_text("a,b\n" * N)
    assert "expected one column, got 2" in fail(capsys, *transform, "--ids", "ids.csv")


def test_an_empty_line_in_a_table_of_one_column_is_a_missing_value(capsys):
    Path("one.csv").write_text("1.5\n2.5\n\n4.5\n" + "0.5\n" * 57)
    views = ("--view", "image=one.csv", "--view", "text=text.npy")
    assert "line 3 is empty" in fail(capsys, "fit", *views, *CCA_2, "-o", "new.mvcca")
    Path("one.csv").write_text("".join(f"{x}\n" for x in np.load("text.npy")[:, 0]) + "\n\n")
    one = ("--param", "n_components=1", "-o", "m.mvcca")
    succeed(capsys, "fit", *views, "--method", "pls", *one)


def test_only_ends_of_lines_separate_labels_and_ids():
    Path("y.txt").write_text("cat\u2028dog,bird\x0b\nfish\x85\n", encoding="utf-8")
    assert read_labels("y.txt").sets() == [{"cat\u2028dog", "bird"}, {"fish"}]
    Path("ids.txt").write_text("a\u2028b\n\nc\x1cd\n", encoding="utf-8")
    assert read_ids("ids.txt").tolist() == ["a\u2028b", "", "c\x1cd"]


@pytest.mark.parametrize("header", ["", "0\n", "class\n"])
@pytest.mark.parametrize("kind", ["numbers", "words"])
def test_the_number_of_objects_tells_a_line_of_names_from_the_first_label(capsys, header, kind):
    labels = CLASSES if kind == "numbers" else np.array(list("wxyz"))[CLASSES]
    Path("y.csv").write_text(header + "".join(f"{label}\n" for label in labels))
    np.save("y.npy", CLASSES)
    method = ("--method", "mlcca", "--param", "n_components=2", "--param", "reg=0.01")
    for file, model in (("y.csv", "csv.mvcca"), ("y.npy", "npy.mvcca")):
        code, _, err = run(capsys, *FIT[:-2], "--labels", file, *method, "-o", model)
        assert code == 0
        is_clear = (header, kind) == ("class\n", "numbers")  # a word above numbers is no label
        assert ("is read as a header" in err) == bool(header and file == "y.csv" and not is_clear)
    same_model(mvcca.load("csv.mvcca"), mvcca.load("npy.mvcca"))


def test_scores_go_to_csv_too(capsys, model):
    out = succeed(capsys, "transform", "model.mvcca", "--view", "text=text.npy", "-o", "s.csv")
    assert out == f"s.csv: {N} rows, 2 components\n"
    with open("s.csv", newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["component0", "component1"]
    expected = model.transform({"text": np.load("text.npy")})["text"]
    np.testing.assert_array_equal(np.array(rows, dtype=float), expected)
    np.testing.assert_array_equal(read_whole("s.csv", header=True).matrix, expected)


# ---- the similarity of the model ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("estimator", "vectors_of"),
    [
        (mvcca.JRL(n_neighbors=10), mvcca.JRL.propagate),
        (mvcca.CMOLRS(3, random_state=0), mvcca.CMOLRS.transform),
        (mvcca.MLCCA(3), retrieval_vectors),
    ],
    ids=["jrl", "cmolrs", "mlcca"],
)
@pytest.mark.parametrize("piped", [False, True], ids=["alone", "in a pipeline"])
def test_search_ranks_by_the_similarity_of_the_model(capsys, estimator, vectors_of, piped):
    fitted = estimator.fit(arrays(), CLASSES)
    saved = Pipeline([("rows", PerView("passthrough").fit(arrays())), ("model", fitted)])
    mvcca.save(saved if piped else fitted, "model.mvcca")
    search = ("search", "model.mvcca", "--gallery", "image=image.npy", "--query", "text=text.npy")
    for chosen, rows in (
        ((), vectors_of(fitted, arrays())),
        (("--similarity", "euclidean"), fitted.transform(arrays())),
    ):
        succeed(capsys, *search, "-k", 5, *chosen, "-o", "hits.npz")
        by = chosen[-1] if chosen else "inner"
        scores, items = top_k(rows["text"], rows["image"], 5, by)
        with np.load("hits.npz") as hits:
            np.testing.assert_array_equal(hits["items"], items)
            np.testing.assert_allclose(hits["scores"], scores)


# ---- info ---------------------------------------------------------------------------------------


def test_info_tells_the_steps_and_the_views_of_a_pipeline(capsys):
    pipeline = Pipeline([("rows", PerView(StandardScaler())), ("cca", CCA(2, reg=0.01))])
    mvcca.save(pipeline, "unfitted.mvcca")
    assert "not fitted" in succeed(capsys, "info", "unfitted.mvcca")
    for steps in (pipeline.steps, [*pipeline.steps, ("join", mvcca.JoinViews())]):
        mvcca.save(Pipeline(steps).fit(arrays()), "pipeline.mvcca")
        out = succeed(capsys, "info", "pipeline.mvcca")
        assert "not fitted" not in out
        assert re.search(r"^steps +rows \(PerView\), cca \(CCA\)", out, re.M)
        assert re.search(r"^views +image \(6\), text \(5\)$", out, re.M)
        assert re.search(r"^components +2$", out, re.M)
        found = json.loads(succeed(capsys, "info", "pipeline.mvcca", "--json"))
        assert found["fitted"] is True
        assert len(found["canonical_correlations"]) == 2
    scaling = PerView(StandardScaler()).fit(arrays())
    mvcca.save(scaling, "scaling.mvcca")
    assert "not fitted" not in succeed(capsys, "info", "scaling.mvcca")


def test_no_name_controls_the_terminal(capsys):
    name = "a\x1b[31m\x1b]0;title\x07\x9b2Jb\x7f"
    views = ("--view", f"{name}=image.npy", "--view", "text=text.npy")
    Path("y.txt").write_text("".join(f"c{c}\x1b[2J\n" for c in CLASSES))
    Path("esc\x1b[31m.npy").write_bytes(b"")
    options = (*COMPARE_2, "cca,mlcca")
    for command in (
        ("fit", *views, *CCA_2, "-o", "m\x1b[31m.mvcca"),
        ("info", "m\x1b[31m.mvcca"),
        ("info", "m\x1b[31m.mvcca", "--json"),
        ("transform", "m\x1b[31m.mvcca", "--view", f"{name}=image.npy", "-o", "s\x1b.npy"),
        ("transform", "m\x1b[31m.mvcca", "--view", "\x1b[31m=image.npy", "-o", "s\x1b.npy"),
        ("fit", *views, *CCA_2, "-o", "no\x1b/m.mvcca"),
        ("compare", *views, "--labels", "y.txt", *options, "--by-direction"),
        ("compare", *views, "--labels", "y.txt", *options, "--json"),
        ("compare", "--view", f"{name}=esc\x1b[31m.npy", *views[2:]),
        ("compare", *views, "\x1b[31m"),
        ("compare", *views, "--measures", "\x1b[31m"),
        ("search", "m\x1b[31m.mvcca", "--gallery", f"{name}=image.npy", "--query", "\x1b=text.npy"),
    ):
        _, out, err = run(capsys, *command)
        assert out + err
        assert not {c for c in out + err if unicodedata.category(c) == "Cc"} - {"\n"}, command
        assert r"\x1b" in out + err or r"\u001b" in out + err or "compare" in command


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_no_name_in_hits_controls_the_terminal(capsys, monkeypatch, more):
    name = "a\x1b[31m\x9b2J"
    views = ("--view", f"{name}=image.npy", "--view", "text=text.npy")
    succeed(capsys, "fit", *views, *CCA_2, "-o", "m.mvcca")
    galleries = ("--gallery", f"{name}=image.npy", "--gallery", "text=text.npy")
    command = ("search", "m.mvcca", *galleries, "--query", "text=text.npy", "-k", "2", *more)
    data = succeed(capsys, *command)
    if not more:
        assert name in data  # a program reads names as they are
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    shown = succeed(capsys, *command)
    assert not {c for c in shown if unicodedata.category(c) == "Cc"} - {"\n"}
    assert len(shown.splitlines()) == len(data.splitlines())
    assert r"a\x1b[31m" in shown or r"a\u001b[31m" in shown


# ---- malformed files, and no room ---------------------------------------------------------------


def _npy_of_shape(name, shape):
    with open(name, "wb") as file:
        header = {"descr": "<f8", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        file.write(b"x" * 64)


def _npz_of_shape(name, kind, shape):
    parts = {"data": np.ones(N), "indices": np.zeros(N, int), "indptr": np.arange(N + 1)}
    np.savez(name, format=np.array(kind.encode()), shape=np.array(shape), **parts)


MALFORMED = {
    "huge.npy": lambda name: _npy_of_shape(name, (4, 10**20)),
    "large.npy": lambda name: _npy_of_shape(name, (4 * 10**6, 10**7)),
    "csr.npz": lambda name: _npz_of_shape(name, "csr", (60.0, 4.0)),
    "csc.npz": lambda name: _npz_of_shape(name, "csc", (60.5, 4.0)),
    "long.csv": lambda name: Path(name).write_text("1,2\n" + "1" * 140_000 + ",2\n"),
    "long.tsv": lambda name: Path(name).write_text("a\tb\n" + "x" * 140_000 + "\t2\n"),
}


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_file_is_one_line_in_every_command(capsys, name):
    MALFORMED[name](name)
    other = ("--view", "text=text.npy")
    for command in (
        ("compare", "--view", f"image={name}", *other),
        ("compare", "--view", "image=image.npy", *other, "--labels", name),
        ("fit", "--view", f"image={name}", *other, *CCA_2, "-o", "new.mvcca"),
        ("fit", *FIT[1:-2], "--method", "mlcca", "--labels", name, "-o", "new.mvcca"),
        ("transform", "model.mvcca", "--view", f"image={name}", "-o", "s.npy"),
        ("search", "model.mvcca", "--gallery", f"image={name}", "--query", "text=text.npy"),
    ):
        assert name in fail(capsys, *command)
    assert not left_over()


@pytest.mark.parametrize("digits", [20, 400, 5000])
def test_a_number_that_is_too_long_is_a_usage_error(capsys, digits):
    number = "1" * digits
    views = ("--view", "image=image.npy", "--view", "text=text.npy")
    for command in (
        (*FIT, "--method", "cca", "--param", f"reg={number}"),
        (*FIT, "--method", "cca", "--param", f'reg={{"image": -{number}, "text": 1}}'),
        (*FIT, *CCA_2, "--block-rows", number),
        ("compare", *views, "--n-components", number),
        ("compare", *views, "--seed", number),
        ("compare", *views, "--seed", "-1"),
        ("compare", *views, "--measures", f"r@{number}"),
    ):
        code, out, err = run(capsys, *command)
        assert (code, out) == (2, ""), command
        assert "Traceback" not in err
    assert not Path("model.mvcca").exists()


@pytest.mark.slow
@pytest.mark.usefixtures("model")
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize(
    "command",
    [
        ("--version",),
        ("info", "model.mvcca"),
        ("info", "model.mvcca", "--json"),
        ("search", "model.mvcca", "--gallery", "image=image.npy", "--query", "text=text.npy"),
        ("transform", "model.mvcca", "--view", "text=text.npy", "-o", "s.npy"),
    ],
    ids=lambda command: command[0],
)
def test_no_room_for_the_output_is_one_line(command):
    with open("/dev/full", "w") as full:
        answer = subprocess.run(
            [sys.executable, "-m", "mvcca", *command],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert answer.returncode == 1
    err = without_reads(answer.stderr)
    assert err.startswith("mvcca: error: ")
    assert err.endswith("No space left on device\n")
    assert err.count("\n") == 1


def test_names_of_files_need_not_be_text(capsys):
    odd = os.fsdecode(b"caf\xe9")
    np.save(f"{odd}.npy", np.load("image.npy"))
    views = ("--view", f"image={odd}.npy", "--view", "text=text.npy")
    succeed(capsys, "fit", *views, *CCA_2, "-o", f"{odd}.mvcca")
    succeed(capsys, "info", f"{odd}.mvcca", "--json")
    succeed(capsys, "transform", f"{odd}.mvcca", *views, "-o", f"{odd}-{{view}}.npy")
    queries = ("--gallery", f"image={odd}.npy", "--query", "text=text.npy")
    succeed(capsys, "search", f"{odd}.mvcca", *queries, "-o", f"{odd}.csv")
    options = (*COMPARE_2, "cca", "--report", f"{odd}.html")
    out = succeed(capsys, "compare", *views, *options)
    assert "\nReport: caf\\udce9.html\n" in out
    assert r"caf\udce9.npy" in Path(f"{odd}.html").read_text(encoding="utf-8")
    assert "expected a name in UTF-8" in refuse(
        capsys, "compare", "--view", f"{odd}=image.npy", *views[2:]
    )
