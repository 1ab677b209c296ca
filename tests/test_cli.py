"""The command line as its user meets it: what it prints, what it writes, and how it ends.

Figures are judged by data whose answer is known: a view that is a linear map of the other is found
without a mistake, and classes that lie far apart are never confused.
"""

from __future__ import annotations

import base64
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tracemalloc
from contextlib import redirect_stderr, redirect_stdout
from html import unescape
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from commands import fail, figures, refuse, run, without_reads
from scipy import sparse

import mvcca
from mvcca import CCA, MLCCA, Labels, Views
from mvcca.cli import main, values
from mvcca.cli.commands import COMMANDS
from mvcca.cli.console import Progress
from mvcca.comparison.next_step import written
from mvcca.comparison.registry import GROUPS, METHODS

N = 120
CLASSES = np.arange(N) % 4
FAST = ("--n-components", "2", "--no-tune", "--cv", "2")  # where no figure is at stake
GOALS = ("object", "class")
CCA_FAST = ("--methods", "cca", *FAST)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The folder that commands run in: two views of four far classes, one a map of the other."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    image = np.round(10 * rng.standard_normal((4, 6))[CLASSES] + rng.standard_normal((N, 6)), 3)
    np.save("image.npy", image)
    np.save("text.npy", image @ rng.standard_normal((6, 6)))
    np.save("y.npy", CLASSES)
    return tmp_path


def compare(capsys, *arguments, image="image.npy", text="text.npy", labels="y.npy"):
    given = ["--labels", labels] if labels else []
    views = ["--view", f"image={image}", "--view", f"text={text}"]
    return run(capsys, "compare", *views, *given, "--verbose", *arguments)


def same_figures(first, second):
    """Whether two outputs agree in all but the seconds."""
    first, second = (
        {name: values[:4] for name, values in figures(out).items()} for out in (first, second)
    )
    return first == second and len(first) > 1


# ---- starting -----------------------------------------------------------------------------------


def test_help_imports_nothing_that_does_the_work():
    program = (
        "import sys\nfrom mvcca.cli import main\n"
        f"for words in {[[], *([name] for name in COMMANDS)]}:\n"
        "    try:\n        main([*words, '--help'])\n"
        "    except SystemExit as end:\n        assert end.code == 0\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert answer.stdout.count("usage: mvcca") == 1 + len(COMMANDS)
    loaded = set(answer.stderr.split())
    assert "mvcca.cli.parser" in loaded
    assert not loaded & {"numpy", "scipy", "sklearn", "matplotlib", "numba", "torch", "dask"}


def test_python_m_mvcca_prints_the_version():
    command = [sys.executable, "-m", "mvcca", "--version"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    assert answer.stdout == f"mvcca {mvcca.__version__}\n"


BASE_INSTALL = """
import sys
import scipy.stats  # which looks for matplotlib itself

class Absent:
    def find_spec(self, name, *_):
        if name in ("faiss", "pandas", "pyarrow", "torch"):
            raise ModuleNotFoundError(f"No module named {name!r}")

sys.meta_path.insert(0, Absent())
sys.modules["matplotlib"] = None

from mvcca.cli import main
"""


@pytest.mark.slow  # starts a process
def test_a_base_install_runs_the_demo_and_names_the_extra_of_networks():
    demo = ["demo", "--parts", "halves", "--methods", "cca,jrl", "--no-tune", "--cv", "0.2"]
    demo += ["--verbose", "--report", "out.html", "--budget", "none"]  # on a busy machine too
    views = ["--view", "image=image.npy", "--view", "text=text.npy"]
    compare = ["compare", "--methods", "cca,dcca", *views]
    fit = ["fit", "--method", "dcca", "-o", "x.mvcca", *views]
    program = f"{BASE_INSTALL}\nprint(*map(main, {[demo, compare, fit]}))"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert answer.stdout.endswith("\n0 1 1\n"), answer.stderr
    assert "JRL" in figures(answer.stdout)
    assert "<table" in Path("out.html").read_text(encoding="utf-8")
    *_, first, second = answer.stderr.splitlines()
    for line in (first, second):
        assert line.startswith("mvcca: error: dcca: ")
        assert line.endswith(": pip install mvcca[deep]")


def test_every_method_is_listed(capsys):
    code, out, _ = run(capsys, "methods")
    assert code == 0
    assert all(f"\n  {name} " in out for name in METHODS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compar"], "did you mean compare?"),
        (["demo", "--parts", "havles"], "did you mean halves?"),
        (["fit", "--method", "ncc"], "did you mean 'ncca'"),
        (
            ["compare", "--view=a=a.npy", "--view=b=b.npy", "--measure", "map"],
            "did you mean --measures",
        ),
    ],
)
def test_a_usage_error_has_two_lines_and_suggests_similar_words(capsys, arguments, message):
    assert message in refuse(capsys, *arguments)


def test_every_command_prints_json(capsys):
    views = ("--view", "image=image.npy", "--view", "text=text.npy")
    between = ("--gallery", "image=image.npy", "--query", "text=text.npy", "-k", "1")
    fit = ("fit", *views, "--method", "cca", "--no-tune", "-o", "model.mvcca")
    migrate = ("migrate", "image.npy", "text.npy", "-o", "migrated.npy")
    np.savetxt("pairs.csv", np.tile(np.arange(20)[:, None], 2), "%d", ",")
    align = ("align", "image.npy", "text.npy", "--pairs", "pairs.csv", "-o", "aligned.mvcca")
    expected = {
        fit: lambda found: found["method"] == "CCA",
        ("compare", *views, "--methods", "pls", *FAST): lambda found: found[0]["best"] == "PLS",
        ("transform", "model.mvcca", *views, "-o", "{view}-s.npy"): lambda f: f[0]["rows"] == N,
        ("search", "model.mvcca", *between, "-o", "hits.csv"): lambda f: f["queries"] == N,
        ("info", "model.mvcca"): lambda found: found["fitted"],
        ("methods",): lambda found: set(found) == set(METHODS),
        migrate: lambda found: found["rows"] == N,
        align: lambda found: not found["failed"],
        ("similarity", "image.npy", "text.npy"): lambda found: found[0]["value"] == 1,
    }
    for command, is_right in expected.items():
        code, out, err = run(capsys, *command, "--json")
        assert code == 0, (command, err)
        assert is_right(json.loads(out)), command
    _, out, _ = run(capsys, "search", "model.mvcca", *between, "--json")
    hits = [json.loads(line) for line in out.splitlines()]
    assert [hit["query"] for hit in hits] == list(range(N))


def test_quiet_leaves_out_notes_and_the_next_step(capsys, monkeypatch):
    monkeypatch.setattr("mvcca.cli.compare._LARGE_BYTES", 1)
    arguments = ("--methods", "cca", "--n-components", "2")
    _, out, err = compare(capsys, *arguments)
    assert "\nNext, for the same object: mvcca fit --view image=image.npy " in out
    assert "\nNext, for the same class: mvcca fit --view image=image.npy " in out
    assert "loads all rows into memory" in err
    _, out, err = compare(capsys, *arguments, "--quiet")
    assert "Next" not in out
    assert err == ""


def next_step(capsys, *arguments, **files):
    """The command that a comparison prints last, after it was run, and its model."""
    _, out, _ = compare(capsys, *arguments, **files)
    command = shlex.split(re.findall(r"^Next.*: mvcca (.*)$", out, re.M)[-1])
    assert run(capsys, *command)[0] == 0
    return command, mvcca.load(command[-1])


def test_the_next_step_fits_the_method_that_was_best(capsys):
    untuned = ("--methods", "mlcca", "--n-components", "2", "--sigma", "0.5", "--no-tune")
    command, model = next_step(capsys, *untuned)
    found = model.get_params()
    assert (found["n_components"], found["reg"], found["sigma"]) == (2, 0.1, 0.5)
    assert "--no-tune" not in command  # as all that could be tuned is given


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("cca", {}, ["--goal", "class", "--labels"]),
        ("mlcca", {"n_components": 3, "sigma": 2}, ["n_components=3", "sigma=2", "--labels"]),
        pytest.param("pls", {}, ["--goal", "class"], marks=pytest.mark.slow),
    ],
)
def test_the_next_step_tunes_for_the_goal_and_refit_takes_the_settings_of_the_folds(
    capsys, name, given, said
):
    rng = np.random.default_rng(0)
    views = {name: np.load(f"{name}.npy") + 20 * rng.random((N, 6)) for name in ("image", "text")}
    for view, X in views.items():
        np.save(f"{view}.npy", X)
    params = [word for item in given.items() for word in ("--param", "{}={}".format(*item))]
    command, model = next_step(capsys, "--methods", name, "--cv", "3", *params)
    assert set(said) <= set(command)
    assert command[command.index("--goal") + 1] == model.cv_goal == "class"
    result = mvcca.compare(name, views, CLASSES, cv=3, params=given)
    (method,) = result.methods
    for goal in result.goals:
        choice, fitted = result.choice(method, goal), result.refit(method, goal)
        assert fitted.get_params().items() >= choice.parameters.items()
        assert fitted.ranking_ == choice.ranking


def test_the_next_step_does_not_tune_what_was_not_tuned(capsys):
    command, model = next_step(capsys, "--methods", "cca", "--no-tune", "--reg", "0", labels=None)
    assert "--no-tune" in command  # 0 is the default of the library
    assert (model.n_components, model.reg) == (10, 0.0)


def test_the_next_step_is_one_command_for_each_question(capsys):
    rng = np.random.default_rng(0)  # classes that pairs hardly show, and pairs that classes hide
    own = rng.standard_normal((N, 3))
    means = rng.standard_normal((4, 3))[CLASSES]
    for name in ("image.npy", "text.npy"):
        np.save(name, np.hstack([own, 3 * means + 2 * rng.standard_normal((N, 3))]))
    options = ("--methods", "cca,mlcca", *FAST, "--report", "out.html")
    code, out, _ = compare(capsys, *options)
    assert code == 0
    assert re.match(r"Same object: CCA .* Same class: MLCCA ", " ".join(out.split()))
    steps = dict(re.findall(r"^Next, for (.*?): mvcca (.*)$", out, re.M))
    assert list(steps) == ["the same object", "the same class"]
    assert len({command.split()[-1] for command in steps.values()}) == 2  # files of models
    for method, command in zip((CCA, MLCCA), steps.values(), strict=True):
        arguments = shlex.split(command)
        assert run(capsys, *arguments)[0] == 0
        assert isinstance(mvcca.load(arguments[-1]), method)
    page = Path("out.html").read_text(encoding="utf-8")
    for what, command in steps.items():
        assert f"<p>For {what}:</p>" in page
        assert f"mvcca {command}" in unescape(page)
    compare(capsys, *options[:-1], "out.md")
    text = Path("out.md").read_text(encoding="utf-8")
    for what, command in steps.items():
        assert f"Next, for {what}: `mvcca {command}`" in text


def test_groups_of_objects_stay_together(capsys):
    rng = np.random.default_rng(0)
    pairs = np.repeat(np.arange(40), 3)
    for name in ("image.npy", "text.npy"):
        np.save(name, rng.standard_normal((40, 5))[pairs] + 1e-9 * rng.standard_normal((N, 5)))
    Path("pairs.txt").write_text("".join(f"pair {pair}\n" for pair in pairs))
    np.save("pairs.npy", pairs)
    options = ("--methods", "nkcca", "--measures", "mrr", "--json", "--cv", "4", "--no-tune")
    _, out, _ = compare(capsys, *options, labels=None)
    (divided,) = json.loads(out)
    views = [np.load("image.npy"), np.load("text.npy")]
    expected = mvcca.compare("nkcca", views, cv=4, groups=pairs, measures="mrr", tune=False)
    for name in ("pairs.txt", "pairs.npy"):
        code, out, _ = compare(capsys, *options, "--groups", name, labels=None)
        assert code == 0
        (found,) = json.loads(out)
        mean = found["methods"][0]["measures"]["mrr"]["mean"]
        assert mean == expected.mean("NKCCA", "mrr")
        assert mean < divided["methods"][0]["measures"]["mrr"]["mean"] / 2
        assert "groups: 40, each in one part of a split" in found["notes"]
    code, _, err = compare(capsys, *options, "--groups", "image=pairs.npy", labels=None)
    assert (code, "--groups of the views text are missing" in err) == (2, True)
    np.save("pairs.npy", pairs[:7])
    code, _, err = compare(capsys, *options, "--groups", "pairs.npy", labels=None)
    assert (code, err) == (1, "mvcca: error: pairs.npy: expected 120 rows, got 7\n")


@pytest.mark.parametrize(
    "value",
    [0.1, np.float64(1e-3), np.int64(2), None, True, "auto", [64, 32], {"α β": 1e-3, "b": [8]}],
)
def test_the_next_step_writes_parameters_as_fit_reads_them(value):
    assert values.parameter(f"name={written(value)}") == ("name", value)


@pytest.mark.parametrize(
    ("is_terminal", "no_color", "is_bold"),
    [(True, "", True), (True, "1", False), (False, "", False)],
)
def test_marked_values_are_bold_on_a_terminal_unless_no_color_is_set(
    capsys, monkeypatch, is_terminal, no_color, is_bold
):
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal, raising=False)
    _, out, _ = compare(capsys, *CCA_FAST)
    assert bool(re.search(r"\x1b\[1m\d\.\d+±[\d.]+<\x1b\[0m", out)) == is_bold


def test_parquet_needs_no_pandas(capsys, monkeypatch):
    _save_parquet("image.parquet", np.load("image.npy"))
    _save_parquet("y.parquet", CLASSES[:, None])
    arguments = ("--methods", "mlcca,pls", *FAST)
    _, expected, _ = compare(capsys, *arguments)
    monkeypatch.setitem(sys.modules, "pandas", None)
    files = {"image": "image.parquet", "labels": "y.parquet"}
    code, out, err = compare(capsys, *arguments, **files)
    assert (code, err) == (0, "")
    assert same_figures(out, expected)


# ---- figures ------------------------------------------------------------------------------------


def test_a_linear_map_of_a_view_is_found_without_a_mistake(capsys):
    code, out, err = compare(
        capsys, "--methods", "cca", "--reg", "0", "--n-components", "6", labels=None
    )
    assert code == 0
    assert err == ""
    assert figures(out)["CCA"] == ["1.000", "1.000"]  # in the fold and in the user's gallery


def test_printed_figures_are_those_of_the_library(capsys):
    fixed = ("--n-components", "2", "--reg", "0.1")
    _, out, _ = compare(capsys, "--methods", "cca", *fixed, "--by-direction")
    views = Views({"image": np.load("image.npy"), "text": np.load("text.npy")})
    result = mvcca.compare({"CCA": CCA(2, reg=0.1)}, views, CLASSES)
    frame = result.to_frame()
    for query, target in (("image", "text"), ("text", "image")):
        lines = [line for line in out.splitlines() if f"{query} -> {target}" in line]
        of_direction = frame[frame.direction == f"{query} -> {target}"]
        means = of_direction.groupby("measure", sort=False).value.mean()
        assert [float(line.split()[-1]) for line in lines] == pytest.approx(list(means), abs=6e-4)
    shown = [result.standing("CCA", goal).shown() for goal in ("object", "class")]
    assert [figures(out)["CCA"][place] for place in (0, -1)] == [f"{own:.3f}" for own in shown]


def test_the_same_seed_prints_the_same_figures_and_another_one_does_not(capsys):
    arguments = ("--methods", "mlcca,fast-mlcca", *FAST)
    _, first, _ = compare(capsys, *arguments)
    _, second, _ = compare(capsys, *arguments)
    _, other, _ = compare(capsys, *arguments, "--seed", "1")
    assert same_figures(first, second)
    assert not same_figures(first, other)


@pytest.mark.slow
def test_jrl_retrieves_digits_as_well_as_published_similarity_does(capsys):
    arguments = ("demo", "--parts", "halves", "--labels", "digit", "--no-report")
    methods = ("--methods", "cca,jrl,cmolrs", "--no-tune", "--cv", "0.2", "--budget", "none")
    _, out, _ = run(capsys, *arguments, *methods, "--verbose")
    assert float(figures(out)["JRL"][-1]) >= 0.59
    for name, ranking in (
        ("CCA", "profile-likelihood"), ("JRL", r"inner \(propagate\)"), ("CMOLRS", "inner")
    ):  # fmt: skip
        assert re.search(rf"^{name} .* {ranking}( |$)", out, re.M)


def test_several_ridges_are_no_matter_to_methods_without_one(capsys):
    methods = [name for name in GROUPS["all"] if "reg" not in METHODS[name].takes()]
    assert methods
    names, fixed = ",".join(["cca", *methods]), "--no-tune"
    code, out, err = compare(capsys, "--methods", names, "--reg", "0.1", "1", fixed)
    assert (code, err) == (0, "")
    _, one, _ = compare(capsys, "--methods", ",".join(methods), "--reg", "0.1", fixed)
    for method in methods:  # nothing to choose, so the same figures and an empty cell
        title = METHODS[method].title
        assert figures(out)[title] == figures(one)[title]
        assert not re.search(rf"^{title} +(0\.1|1\.0)(, (0\.1|1\.0))? ", out, re.M)


def test_the_ridge_that_a_method_took_is_printed_where_it_had_a_choice(capsys):
    _, out, _ = compare(
        capsys, "--methods", "cca", "--n-components", "2", "--reg", "1e-4", "auto", "3"
    )
    assert re.search(r"^CCA +the same .* reg (0\.0001|auto|3)", out, re.M)
    assert "chosen on the same folds: reg from 0.0001, auto, 3.0" in out


# ---- files --------------------------------------------------------------------------------------


def _save_csv(name, rows, delimiter=",", header=""):
    np.savetxt(name, rows, delimiter=delimiter, header=header, comments="", fmt="%.17g")


def _save_parquet(name, rows):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    pandas.DataFrame(rows, columns=[f"x{i}" for i in range(rows.shape[1])]).to_parquet(name)


LABEL_FORMATS = {
    "indicator.npy": lambda name: np.save(name, np.eye(4)[CLASSES]),
    "sparse.npz": lambda name: sparse.save_npz(name, sparse.csr_array(np.eye(4)[CLASSES])),
    "numbers.csv": lambda name: _save_csv(name, CLASSES[:, None], header="class"),
    "words.csv": lambda name: Path(name).write_text("\n".join("abcd"[c] for c in CLASSES)),
    "words.npy": lambda name: np.save(name, np.array(list("abcd"))[CLASSES]),
    "sets.txt": lambda name: Path(name).write_text("\n".join("wxyz"[c] for c in CLASSES)),
    "table.parquet": lambda name: _save_parquet(name, CLASSES[:, None]),
}


@pytest.mark.parametrize("name", LABEL_FORMATS)
def test_every_format_of_classes_gives_the_same_figures(capsys, name):
    LABEL_FORMATS[name](name)
    _, expected, _ = compare(capsys, "--methods", "mlcca,pls", *FAST)
    code, out, err = compare(capsys, "--methods", "mlcca,pls", *FAST, labels=name)
    assert (code, err) == (0, "")
    assert same_figures(out, expected)


def test_labels_in_a_text_file_are_separated_by_commas_and_may_hold_spaces(capsys):
    sets = ["traffic light, person", "person", "", "cat,,dog"]
    Path("sets.txt").write_text("\n".join(sets[c] for c in CLASSES) + "\n")
    code, out, _ = compare(capsys, "--methods", "mlcca", *FAST, labels="sets.txt")
    assert code == 0
    found = re.search(r"labels: (\d+) labels, (\d\.\d) per object", out)
    assert found[1] == "4"
    assert float(found[2]) == pytest.approx(5 / 4, abs=0.06)
    assert re.search(r"^MLCCA: \d+ rows have no labels", out, re.M)


def test_label_names_survive_from_the_file():
    labels = Labels.concatenate([[{"dog", "cat"}, {"cat"}], [set(), {"bird"}]])
    assert labels.texts() == ["cat, dog", "cat", "", "bird"]
    assert Labels.of([1, 0], names=["no", "yes"]).texts() == ["yes", "no"]
    assert Labels.of(np.array([[0, 1], [1, 1]]), names=["a", "b"]).texts() == ["b", "a, b"]


def test_pickled_content_is_never_loaded(capsys):
    class Trap:
        def __reduce__(self):
            return os.mkdir, ("trapped",)

    np.save("trap.npy", np.array([Trap()], dtype=object), allow_pickle=True)
    np.savez("trap.npz", X=np.array([Trap()], dtype=object), allow_pickle=True)
    for name in ("trap.npy", "trap.npz:X"):
        code, out, err = compare(capsys, image=name)
        assert (code, out) == (1, "")
        assert name.removesuffix(":X") in err
    assert not Path("trapped").exists()


# ---- unpaired views, and methods that cannot take the data --------------------------------------


def test_unpaired_views_of_different_heights_skip_the_methods_that_need_pairs(capsys):
    np.save("image.npy", np.load("image.npy")[:70])
    np.save("y_image.npy", CLASSES[:70])
    code, out, _ = compare(
        capsys,
        *("--labels", "text=y.npy", "--methods", "cca,mvcca,mlcca,mvmlcca"),
        *("--measures", "map,r@1,mrr", "--n-components", "3"),
        labels="image=y_image.npy",
    )
    assert code == 0
    assert f"{70 + 120} unpaired objects" in out
    assert f"{56 + 96} training and {14 + 24} held-out objects" in out
    for method in ("CCA", "MVCCA"):
        assert re.search(rf"^{method} +skipped: needs objects seen in two views", out, re.M)
    assert figures(out)["MLCCA"][:3] == ["1.000"] * 3
    assert figures(out)["MVMLCCA"][:3] == ["1.000"] * 3


def test_shuffling_one_view_with_its_labels_changes_nothing_for_methods_without_pairs():
    order = np.random.default_rng(1).permutation(N)
    image, text = np.load("image.npy"), np.load("text.npy")
    values = []
    for rows in (np.arange(N), order):
        views = Views.unpaired({"image": image, "text": text[rows]})
        held_out = np.concatenate([np.arange(0, N, 3), N + np.argsort(rows)[::3]])
        splits = [(np.setdiff1d(np.arange(2 * N), held_out), held_out)]
        labels = Labels.concatenate([CLASSES, CLASSES[rows]])
        result = mvcca.compare("mlcca", views, labels, cv=splits, measures="map")
        values.append(result.mean("MLCCA", "map"))
    assert values[0] == pytest.approx(values[1], abs=1e-12)


def test_a_method_for_two_views_is_skipped_on_three_with_its_own_reason(capsys):
    code, out, _ = compare(capsys, "--view", "more=image.npy", "--methods", "cca,mvcca", *FAST)
    assert code == 0
    assert re.search(r"^CCA +skipped: CCA takes 2 views, got 3", out, re.M)
    assert "MVCCA" in figures(out)


def test_methods_that_learn_from_labels_are_skipped_without_any(capsys):
    code, out, _ = compare(capsys, "--methods", "mvcca,mlcca", "--n-components", "3", labels=None)
    assert code == 0
    assert re.search(r"^MLCCA +skipped: needs labels$", out, re.M)
    assert out.startswith("Same object: ")
    assert "settings: 3 components\n" in out


def test_real_label_vectors_can_be_learned_from_but_make_nothing_relevant(capsys):
    np.save("vectors.npy", np.random.default_rng(0).standard_normal((4, 5))[CLASSES])
    code, out, _ = compare(capsys, "--methods", "mlcca", *FAST, labels="vectors.npy")
    assert code == 0
    assert "labels: label vectors of length 5" in out
    assert out.startswith("Same object: ")


def test_warnings_are_printed_once_with_the_methods_they_concern(capsys):
    code, out, err = compare(capsys, "--methods", "mlcca,mvmlcca,mvmlcca-label", *FAST)
    assert (code, err) == (0, "")
    assert out.count("distinct label sets") == 2  # one for each view, in one note
    assert len(re.findall(r"^MVMLCCA label: ", out, re.M)) == 1


# ---- errors -------------------------------------------------------------------------------------

# What readers refuse is in tests/test_sources.py and tests/test_tables.py; the commonest mistakes
# are in tests/test_cli_mistakes.py.
BROKEN = {
    "folder.npy": (lambda: Path("folder.npy").mkdir(), "expected a folder of .txt files"),
    "garbage.npy": (lambda: Path("garbage.npy").write_bytes(b"x" * 99), "cannot be opened as .npy"),
    "two.npz": (
        lambda: np.savez("two.npz", a=np.ones(3), b=np.ones(3)),
        "name one, as in two.npz:KEY",
    ),
    "two.npz:c": (lambda: np.savez("two.npz", a=np.ones(3)), "no array 'c'; it contains ['a']"),
    "nan.npy": (
        lambda: np.save("nan.npy", np.where(np.eye(N, 3, -4), np.nan, 1)),
        "contains NaN: first in row 4, column 0; 3 such values in 3 of 120 rows. Fill in",
    ),
    "no rows.npy": (lambda: np.save("no rows.npy", np.ones((0, 3))), "is empty"),
    "latin.csv": (
        lambda: Path("latin.csv").write_bytes(b"\xe9,b\n1,2\n"),
        "got the byte 0xe9 in line 1; give --encoding cp1252",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_bad_file_is_one_line_that_names_it_and_says_what_was_expected(capsys, name):
    make, message = BROKEN[name]
    make()
    code, out, err = compare(capsys, image=name)
    assert (code, out) == (1, "")
    assert err.startswith("mvcca: error: ")
    assert err.count("\n") == 1
    assert name.split(":")[0] in err
    assert message in err


@pytest.mark.parametrize(
    ("name", "make", "message"),
    [
        ("few.npy", lambda: np.save("few.npy", CLASSES[:9]), "expected 120 rows, got 9"),
        ("nan.npy", lambda: np.save("nan.npy", np.full(N, np.nan)), "NaN or infinity"),
        ("cube.npy", lambda: np.save("cube.npy", np.ones((N, 2, 2))), "expected a class per row"),
        ("none.txt", lambda: Path("none.txt").write_text("\n" * N), "it is empty"),
        ("gone.txt", lambda: None, "no such file"),
        (
            "wide.csv",
            lambda: Path("wide.csv").write_text("cat,dog\n" * N),
            "its columns hold texts, such as 'cat'; name one of them, as in --columns 2",
        ),
    ],
)
def test_bad_labels_are_one_line_that_names_the_file(capsys, name, make, message):
    make()
    code, out, err = compare(capsys, labels=name)
    assert (code, out) == (1, "")
    assert err.startswith("mvcca: error: ")
    assert err.count("\n") == 1
    assert name in err
    assert message in err


def test_labels_of_two_kinds_are_refused_with_both_files(capsys):
    np.save("vectors.npy", np.random.default_rng(0).standard_normal((N, 3)))
    code, _, err = compare(capsys, "--labels", "text=vectors.npy", labels="image=y.npy")
    assert code == 1
    assert "y.npy, vectors.npy: All labels must be of the same kind" in err


def test_no_method_that_can_run_is_an_error_with_all_reasons(capsys):
    code, out, err = compare(capsys, "--methods", "mlcca,mvmlcca", labels=None)
    assert (code, out) == (1, "")
    reasons = "MLCCA: needs labels; MVMLCCA: needs labels"
    assert err == f"mvcca: error: no method could be fitted. {reasons}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--labels", "image=y.npy"], "--labels takes one FILE, or one NAME=FILE for each"),
        (["--methods", "cca,svm"], "unknown method 'svm'"),
        (["--measures", "map@50,f1"], "Unknown measure 'f1'"),
        (["--measures", "r"], "'r' needs a cut-off"),
        (["--n-components", "0"], "at least 1, got '0'"),
        (["--n-components", "2.5"], "expected an integer"),
        (["--reg", "-1"], "expected"),
        (["--sigma", "0"], "expected a number above 0"),
        (["--sigma", "nan"], "expected a number"),
        (["--cv", "1.5"], "expected a fraction below 1"),
        (["--cv", "1"], "expected at least 2 folds"),
        (["--methods", "nkca"], "did you mean 'nkcca'"),
        (["--methods", "cca", "--sigma", "2"], "--sigma is not a parameter of cca"),
        (
            ["--methods", "cluster-cca", "--label-similarity", "exp"],
            "--label-similarity is not a parameter",
        ),
        (["--methods", "cca", "--epochs", "2"], "--epochs is not a parameter of cca"),
        (["--methods", "cca", "--hidden", "8"], "--hidden is not a parameter of cca"),
        (["--hidden", "8,x"], "at least 1, got 'x'"),
        (["--validation-fraction", "1"], "expected a fraction below 1"),
        (["--methods", "cca", "--deep"], "not allowed with argument --methods"),
        (
            ["--methods", "mlcca", "--sigma", "1", "--param", "sigma=2"],
            "--sigma and --param sigma are the same",
        ),
        (
            ["--methods", "mlcca", "--param", "sigmas=2"],
            "--param sigmas is not a parameter of mlcca",
        ),
        (["--methods", "mlcca", "--param", "cv_goal=class"], "--param cv_goal is not a parameter"),
        (["--view", "image=more.npy"], "--view names 'image' twice"),
        (["--view", "more.npy"], "expected NAME=FILE, got 'more.npy'"),
        (["--view=more=", ""], "expected NAME=FILE"),
    ],
)
def test_a_wrong_argument_is_a_usage_error(capsys, arguments, message):
    views = ["--view", "image=image.npy", "--view", "text=text.npy"]
    assert message in refuse(capsys, "compare", *views, "--labels", "y.npy", *arguments)


def test_an_unknown_device_of_a_comparison_is_one_line(capsys):
    views = ["--view", "image=image.npy", "--view", "text=text.npy"]
    assert "got 'tpu'" in fail(capsys, "compare", *views, "--methods", "cca", "--device", "tpu")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["demo", "--labels", "animals"], "invalid choice: 'animals'"),
        (["compare", "--view", "image=image.npy"], "--view must be given at least twice"),
        (
            ["compare", "--view", "a=a.npy", "--view", "b=b.npy", "--labels", "a=y.npy"],
            "--labels of the views b are missing",
        ),
    ],
)
def test_a_command_that_makes_no_sense_is_a_usage_error(capsys, arguments, message):
    assert message in refuse(capsys, *arguments)


def test_relevance_that_the_data_cannot_give_is_an_error(capsys):
    code, _, err = compare(capsys, "--relevance", "labels", "--methods", "cca", labels=None)
    assert code == 1
    assert "Relevance by labels needs classes or label sets" in err


def test_ctrl_c_ends_with_130(capsys, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("mvcca.cli.compare.run", interrupted)
    code, out, err = compare(capsys)
    assert (code, out) == (130, "")
    assert err == "\nmvcca: interrupted\n"


@pytest.mark.slow  # starts a process
def test_a_reader_that_goes_away_ends_the_command_quietly():
    command = [sys.executable, "-m", "mvcca", "compare", *CCA_FAST]
    views = ["--view", "image=image.npy", "--view", "text=text.npy"]
    read_end, write_end = os.pipe()
    os.close(read_end)
    answer = subprocess.run([*command, *views], stdout=write_end, stderr=subprocess.PIPE)
    os.close(write_end)
    assert answer.returncode == 141
    assert without_reads(answer.stderr.decode()) == ""


def test_progress_is_shown_on_a_terminal_and_wiped_off(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with Progress() as progress:
        progress.update("fitting")
    _, err = capsys.readouterr()
    assert "fitting" in err
    assert err.endswith("\r\x1b[K")


# ---- the report ---------------------------------------------------------------------------------


def drawn_in(html):
    """Titles of the figures of a page, with the number of their panels; none is blank."""
    titles = {}
    for figure in re.findall("<figure.*?</figure>", html, re.S):
        panels = re.sub('<ul class="keys".*?</ul>', "", figure, flags=re.S)
        pictures = re.findall("<svg.*?</svg>", panels, re.S)
        assert all(len(re.findall("<path|<use", picture)) > 10 for picture in pictures)
        assert '<ul class="keys"' in figure
        titles[re.search("<h3>(.*?)</h3>", figure)[1]] = len(pictures)
    return titles


@pytest.fixture(scope="module")
def demo_run(tmp_path_factory):
    """Output and report of a small demo."""
    page = tmp_path_factory.mktemp("demo") / "demo.html"
    arguments = ["demo", "--parts", "halves", "--methods", "cca,mvmlcca,mvmlcca-label"]
    arguments += ["--verbose", "--no-tune", "--budget", "none"]  # which a busy machine would exceed
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        assert main([*arguments, "--report", str(page)]) == 0
    assert err.getvalue() == ""
    return out.getvalue(), page.read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_demo_learns_from_segments_on_request(demo_run, capsys):
    options = ("--no-report", "--no-tune", "--verbose", "--methods", "cca,mvmlcca")
    options += ("--budget", "none")
    _, segments, _ = run(capsys, "demo", "--parts", "halves", *options, "--labels", "segments")
    digit, _ = demo_run
    assert re.search(r"^labels to learn from: 7 labels, 4\.\d per object$", segments, re.M)
    assert figures(digit)["CCA"] == figures(segments)["CCA"]
    assert figures(digit)["MVMLCCA"] != figures(segments)["MVMLCCA"]


def test_the_demo_shows_that_the_ordinary_constraint_is_right_for_few_classes(demo_run):
    out, _ = demo_run
    mean_average_precision = {name: float(values[-1]) for name, values in figures(out).items()}
    assert mean_average_precision["MVMLCCA"] > mean_average_precision["MVMLCCA label"] + 0.1
    assert re.search(r"^MVMLCCA label: View 'left' has 32 features but only 10 dist", out, re.M)


def test_the_report_needs_nothing_outside_itself(demo_run):
    _, html = demo_run
    text = re.sub(r'src="data:image/png;base64,[^"]*"', "", html)
    assert not re.search(r"https?:|//|url\((?!#)|@import|<script|<link|src=", text)


def test_the_report_has_all_figures_and_none_is_blank(demo_run):
    from matplotlib.image import imread

    _, html = demo_run
    assert drawn_in(html) == {"Recall": 1, "Shared space": 1}
    images = re.findall(r'<img src="data:image/png;base64,([^"]*)" alt="([^"]*)">', html)
    assert len(images) == 6 * 9  # queries and their items
    for data, text in images:
        shades = imread(BytesIO(base64.b64decode(data)))
        assert shades.shape == (8, 8, 4)
        assert not shades[..., :3].any()  # black on nothing
        assert len(np.unique(shades[..., 3])) > 2
        assert text in ("", *map(str, range(10)))


def test_the_report_says_what_the_terminal_says_and_how_it_was_made(demo_run):
    out, html = demo_run
    found = re.findall(r"<td[^>]*>.*?</td>", html)
    cells = [unescape(re.sub("<[^>]*>", "", cell)).strip() for cell in found]
    for line in out.splitlines():
        if re.match(r"(CCA|MVMLCCA|random)[ a-zA-Z]* +\d\.\d{3}", line):
            assert all(number in cells for number in re.findall(r"\d\.\d+[±.\d]*[*<]?", line))
    assert re.search(r"MVMLCCA\([^)]*n_components=9, [^)]*reg=0.1, [^)]*within=", html)
    assert f"mvcca {mvcca.__version__}" in html
    assert f"numpy {np.__version__}" in html
    assert html.index("<table") < html.index("<svg") < html.index("<img") < html.index("How this")


def test_the_report_shows_what_was_searched(capsys):
    options = ("--methods", "cca,pls", "--cv", "3", "--report")
    compare(capsys, *options, "out.html")
    page = unescape(Path("out.html").read_text(encoding="utf-8"))
    views = {name: np.load(f"{name}.npy") for name in ("image", "text")}
    tuned = mvcca.compare(["cca", "pls"], views, CLASSES, cv=3)
    searched = dict.fromkeys([f"Search for settings: the same {own}" for own in GOALS], 2)
    drawn = {"Recall": 1, "Shared space": 1}
    assert drawn_in(page) == searched | drawn
    compare(capsys, *options, "out.json")
    (found,) = json.loads(Path("out.json").read_text(encoding="utf-8"))["results"]
    for method, name in zip(found["methods"], ("CCA", "PLS"), strict=True):
        for own, goal in zip(method["tuned"], GOALS, strict=True):
            choice = tuned.choice(name, goal)
            assert own["goal"] == goal
            assert own["value"] == pytest.approx(choice.value, abs=1e-12)
            assert own["chosen"] == {**choice.params, "n_components": choice.n_components}
    compare(capsys, *options, "out.html", "--no-tune")
    page = Path("out.html").read_text(encoding="utf-8")
    assert drawn_in(page) == drawn


@pytest.mark.parametrize(
    ("arguments", "tried"),
    [
        (["--param", "sigma=0.5,2"], [0.5, 2]),
        (["--param", "sigma=[0.5, 2]"], [0.5, 2]),
        (["--param", "sigma=0.5", "--param", "sigma=2"], [0.5, 2]),
    ],
)
def test_several_values_of_a_parameter_are_searched(capsys, arguments, tried):
    _, out, _ = compare(capsys, "--methods", "mlcca", "--cv", "0.3", "--reg", "0.1", *arguments)
    assert f"sigma from {tried[0]}, {tried[1]}\n" in out
    assert float(re.search(r"^MLCCA .* sigma ([\d.]+)", out, re.M)[1]) in tried


def test_a_search_beside_tuning_fits_estimators_that_tune_themselves(capsys):
    _, model = next_step(capsys, "--methods", "mlcca", "--cv", "0.3", "--param", "sigma=1,2")
    assert (model.reg, model.sigma in (1, 2)) == ("cv", True)


def test_a_small_budget_says_what_it_leaves_out(capsys):
    options = ("--methods", "cca,jrl", "--cv", "3", "--budget")
    code, _, err = compare(capsys, *options, "0.0001s")
    assert code == 1
    assert "No method could be measured within --budget 0.0001s. Pass a larger one, or" in err
    assert "or --budget none, which sets no limit" in err
    _, out, _ = compare(capsys, *options, "none")
    assert {"CCA", "JRL"} <= {*figures(out)}
    assert compare(capsys, *options, "soon")[0] == 1


def test_the_report_of_other_data_lists_labels_and_escapes_them(capsys):
    names = ["<script>", "a & b", "'c'", '"d"']
    Path("y.csv").write_text(
        "\n".join(f'"{names[c].replace(chr(34), chr(34) * 2)}"' for c in CLASSES)
    )
    code, out, err = compare(
        capsys,
        *("--methods", "mlcca", *FAST, "--report", "out.html"),
        labels="y.csv",
    )
    assert (code, err) == (0, "")
    assert "\nReport: out.html\n" in out
    html = Path("out.html").read_text(encoding="utf-8")
    assert "<script>" not in html
    assert "[&lt;script&gt;]" in html
    assert drawn_in(html) == {"Recall": 1, "Shared space": 1}
    queries = "".join(re.findall('<ol class="found">.*?</ol>', html, re.S))
    assert queries.count("✓") + queries.count("✗") == 6 * 8
    assert not list(Path().glob("*.part"))


@pytest.mark.parametrize("n_components", ["1", "2"])
def test_unpaired_views_without_correlations_or_a_plane_have_a_report_too(capsys, n_components):
    code, _, err = compare(
        capsys,
        *("--labels", "text=y.npy", "--methods", "mlcca", *FAST, "--n-components", n_components),
        *("--report", "out.html"),
        labels="image=y.npy",
    )
    assert (code, err) == (0, "")
    html = Path("out.html").read_text(encoding="utf-8")
    plane = {"Shared space": 1} if n_components == "2" else {}
    assert drawn_in(html) == plane


def test_the_report_names_objects_by_their_ids(capsys):
    Path("names.txt").write_text("\n".join(f"photo <{number}>" for number in range(N)))
    arguments = (*CCA_FAST, "--report", "out.html")
    assert compare(capsys, *arguments, "--ids", "names.txt")[0] == 0
    html = Path("out.html").read_text(encoding="utf-8")
    assert len(re.findall(r"photo &lt;\d+&gt;", html)) == 6 * 9  # queries and their items
    assert "row " not in "".join(re.findall(r"<li>.*?</li>", html, re.S))
    Path("names.txt").write_text("one\ntwo")
    code, _, err = compare(capsys, *arguments, "--ids", "names.txt")
    assert code == 1
    assert f"names.txt: expected {N} rows, got 2" in err


def test_a_report_that_cannot_be_written_leaves_the_old_one_and_no_rest(capsys, monkeypatch):
    Path("out.html").write_text("the old one")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    code, out, err = compare(capsys, *CCA_FAST, "--report", "out.html")
    assert code == 1
    assert "CCA" in figures(out)
    assert err == "mvcca: error: out.html: No space left on device\n"
    assert Path("out.html").read_text() == "the old one"
    assert not list(Path().glob("*.part"))


def test_a_report_in_no_folder_is_refused_before_the_work(capsys):
    code, out, err = compare(capsys, "--report", "absent/out.html")
    assert (code, out) == (1, "")
    assert err == "mvcca: error: absent/out.html: its directory absent does not exist\n"


@pytest.mark.parametrize("command", ["compare", "demo"])
def test_without_matplotlib_the_report_has_no_pictures_and_says_so(capsys, monkeypatch, command):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    arguments = (*CCA_FAST, "--report", "out.html")
    if command == "compare":
        code, out, err = compare(capsys, *arguments)
    else:
        code, out, err = run(capsys, "demo", "--parts", "halves", "--verbose", *arguments)
    assert code == 0
    assert "CCA" in figures(out)
    assert err == (
        "mvcca: out.html has no figures, which need matplotlib: pip install 'mvcca[plot]'\n"
    )
    html = Path("out.html").read_text(encoding="utf-8")
    assert "<table" in html
    assert "<img" not in html
    assert "<svg" not in html
    assert "no figures, which need matplotlib" in html


@pytest.mark.parametrize("name", ["out.xls", "out", "out.html.gz"])
def test_a_report_with_an_unknown_ending_is_refused_before_the_work(capsys, name):
    code, out, err = compare(capsys, "--methods", "cca", "--report", name)
    assert (code, out) == (1, "")
    endings = ".html, .htm, .csv, .json or .md"
    assert err == f"mvcca: error: {name}: expected a file for results ending in {endings}\n"
    assert not Path(name).exists()


def test_names_with_dollars_are_drawn_as_they_are(capsys):
    names = ["US$ and C$", r"\frac{$", "$x_$", "$$"]
    Path("y.csv").write_text("class\n" + "\n".join(f'"{names[c]}"' for c in CLASSES))
    views = ("--view", "$a^$=image.npy", "--view", "b$_=text.npy", "--labels", "y.csv")
    options = ("--methods", "cca,mlcca", *FAST, "--report", "out.html")
    code, _, err = run(capsys, "compare", *views, *options, "--header", "yes")
    assert (code, err) == (0, "")
    page = unescape(Path("out.html").read_text(encoding="utf-8"))
    assert list(drawn_in(page)) == ["Recall", "Shared space"]
    for name in (*names, "$a^$", "b$_"):  # classes and views in the legend of the plane
        assert re.search(f"</span>{re.escape(name)}</li>", page)


def test_large_views_are_named_in_bytes_before_the_work(capsys, monkeypatch):
    monkeypatch.setattr("mvcca.cli.compare._LARGE_BYTES", 10_000)
    code, _, err = compare(capsys, *CCA_FAST)
    assert code == 0
    assert err.startswith("mvcca: comparing loads all rows into memory: 0.0 GB of views")
    monkeypatch.setattr("mvcca.cli.compare._LARGE_BYTES", 12_000)  # 2 views of 120 x 6 x 8 bytes
    assert compare(capsys, *CCA_FAST)[2] == ""


@pytest.mark.slow
def test_comparing_holds_files_once(capsys):
    """The files, a copy of the rows of a fold, and the evaluation, which takes 60 MB here."""
    rng = np.random.default_rng(0)
    for name in ("image.npy", "text.npy"):
        np.save(name, rng.standard_normal((40_000, 50)))
    n_bytes = 2 * 40_000 * 50 * 8
    arguments = ("--methods", "cca", "--n-components", "2", "--cv", "0.2")
    compare(capsys, *arguments, labels=None)  # what is imported and compiled stays
    tracemalloc.start()
    try:
        code, _, _ = compare(capsys, *arguments, labels=None)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert code == 0
    assert n_bytes < peak < 3.5 * n_bytes
