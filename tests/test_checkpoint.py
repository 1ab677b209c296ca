"""Checkpoints: other data is refused, and nothing but the fit's own files is touched."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from estimators import FAMILIES, LABELS, VARIANTS, blocks_for
from test_large_data import interrupt

import mvcca
from mvcca import CCA, MVMLCCA, Views, config_context, open_matrix
from mvcca.blocks import Block
from mvcca.machine.archive import write_archive
from mvcca.statistics.passes import _checkpoint
from mvcca.statistics.passes._checkpoint import fingerprint_of

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # of fits to tiny data


@pytest.fixture(autouse=True)
def _kept_after_every_block(monkeypatch):
    monkeypatch.setattr(_checkpoint, "_SECONDS", 0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of a user who names things as a checkpoint does, nearly."""
    folder = tmp_path / "kept"
    folder.mkdir()
    for name in ("passport_model.mvcca", "pass.mvcca", "pass0.mvcca.bak", "passes.txt",
                 ".pass0.mvcca.0123.part", ".thesis.part", "fit.json", "pass00.mvcca"):  # fmt: skip
        (folder / name).write_text("mine")
    return folder


def mine(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir() if file.read_bytes() == b"mine")


# ---- the user's files ----------------------------------------------------------------------------


def test_a_fit_that_is_done_removes_its_own_files_only(folder):
    before = sorted(os.listdir(folder))
    with config_context(checkpoint=folder):
        MVMLCCA(2, within="sample").fit(blocks_for(MVMLCCA(within="label")), LABELS)
    assert sorted(os.listdir(folder)) == mine(folder) == before


def test_an_interrupted_and_resumed_fit_removes_its_own_files_only(folder):
    before = mine(folder)
    with config_context(checkpoint=folder, block_rows=10):
        interrupt(lambda: CCA(2).fit(blocks_for(CCA())), 4)
        assert sorted(os.listdir(folder)) == sorted([*before, "pass0.mvcca"])
        CCA(2).fit(blocks_for(CCA()))
    assert sorted(os.listdir(folder)) == mine(folder) == before


def test_a_model_in_the_place_of_a_checkpoint_is_not_replaced(tmp_path):
    mvcca.save(CCA(2), tmp_path / "pass0.mvcca")
    before = (tmp_path / "pass0.mvcca").read_bytes()
    with (
        config_context(checkpoint=tmp_path),
        pytest.raises(ValueError, match=r"pass0\.mvcca is not a checkpoint, .* Move it away"),
    ):
        CCA(2).fit(blocks_for(CCA()))
    assert (tmp_path / "pass0.mvcca").read_bytes() == before


# ---- other data ----------------------------------------------------------------------------------


def one_number_changed(blocks: dict[str, Any], name: str) -> dict[str, Any]:
    changed = blocks[name].copy()
    values = changed.data if sp.issparse(changed) else changed.reshape(-1)
    values[len(values) // 2 + 1] += 1e-3
    return {**blocks, name: changed}


KINDS = {
    "dense": lambda X: X,
    "float32": lambda X: X.astype(np.float32),
    "columns first": np.asfortranarray,
    "every other column": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "sparse": lambda X: sp.csr_array(X * (X > 0)),
}


ADDING = [estimator for estimator in VARIANTS if hasattr(estimator, "partial_fit")]


def in_ci(estimator: Any, kind: str) -> bool:
    """Digests are of rows, not of estimators: each kind once, and one kind on each family."""
    return estimator is ADDING[0] or (kind == "dense" and estimator in FAMILIES)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("estimator", "kind"),
    [
        pytest.param(
            estimator,
            kind,
            id=f"{' '.join(repr(estimator).split())}-{name}",
            marks=() if in_ci(estimator, name) else pytest.mark.long,
        )
        for estimator in ADDING
        for name, kind in KINDS.items()
        if name == "dense" or estimator in FAMILIES
    ],
)
def test_one_changed_number_in_memory_is_another_fit(estimator, kind, tmp_path):
    blocks = {name: kind(X) for name, X in blocks_for(estimator).items()}
    first, *_, last = sorted(blocks, key=lambda name: name != getattr(estimator, "confounds", ""))
    with config_context(block_rows=10, checkpoint=tmp_path / "kept"):
        stop_after_first_writing(lambda: estimator.fit(blocks, LABELS))
        with pytest.raises(ValueError, match=r"a fit (of|with) other data"):
            estimator.fit(one_number_changed(blocks, first), LABELS)
        changed = one_number_changed(blocks, last)
        with suppress(ValueError):  # what was saved may be of the first view alone: then it is kept
            estimator.fit(changed, LABELS)
            weights = estimator.weights_
            with config_context(checkpoint=None):
                estimator.fit(changed, LABELS)
            for name in weights:
                np.testing.assert_array_equal(weights[name], estimator.weights_[name])
            return
        estimator.fit(blocks, LABELS)
    assert not list((tmp_path / "kept").iterdir())


class Stop(BaseException):
    """Ends a fit as Ctrl-C does."""


def stop_after_first_writing(fit: Any) -> None:
    def write_and_stop(*args: Any) -> None:
        write_archive(*args)
        raise Stop

    with pytest.MonkeyPatch.context() as patch:
        for module in ("mvcca.machine.archive", "mvcca.deep._training.checkpoint"):
            if module in sys.modules:  # torch may not be there
                patch.setattr(f"{module}.write_archive", write_and_stop)
        with pytest.raises(Stop):
            fit()


def test_rows_are_hashed_once_for_all_passes_of_a_fit(monkeypatch, tmp_path):
    hashed, digest = [], Block.digest
    monkeypatch.setattr(Block, "digest", lambda rows: hashed.append(1) or digest(rows))
    blocks = blocks_for(MVMLCCA(within="label"))
    with config_context(checkpoint=tmp_path):
        MVMLCCA(2, within="sample").fit(blocks, LABELS)
    assert len(hashed) == len(blocks)


@pytest.mark.parametrize("swap", ["values", "columns", "rows", "shape"])
def test_sparse_rows_are_told_apart_by_all_that_they_hold(swap):
    X = sp.csr_array(np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]))
    other = {
        "values": sp.csr_array((X.data[::-1], X.indices, X.indptr)),
        "columns": sp.csr_array((X.data, np.array([0, 1, 1]), X.indptr)),
        "rows": sp.csr_array((X.data, X.indices, np.array([0, 1, 3]))),
        "shape": sp.csr_array((X.data, X.indices, X.indptr), shape=(2, 4)),
    }[swap]
    assert fingerprint_of(Views({"a": X}), "") != fingerprint_of(Views({"a": other}), "")


@pytest.mark.parametrize("offset", [0, 300_000, 1_000_000 - 8])
def test_a_file_of_the_same_size_and_time_is_told_apart_by_its_bytes(tmp_path, offset):
    path = tmp_path / "x.npy"
    np.save(path, np.arange(125_000.0).reshape(1000, 125))
    before, times = open_matrix(path).fingerprint(), os.stat(path)
    with open(path, "r+b") as file:
        file.seek(128 + offset)
        file.write(np.float64(-1.0).tobytes())
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert open_matrix(path).fingerprint() != before
