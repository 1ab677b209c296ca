"""The table of faults and bad inputs that the package survives: estimator by row by storage.

A new estimator adds itself to `ESTIMATORS` of test_contract.py and is held to every row in every
storage, networks on dense rows. Rows about processes, files, devices and formats have tests
elsewhere, listed by name.
`make test` runs one estimator per family on dense rows, and one in every storage; the rest is slow.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
import test_contract as contract
from sklearn.base import clone
from sklearn.utils._param_validation import InvalidParameterError
from test_contract import ADDING, FAMILIES, LABELS, POSITION_BLIND, N

import mvcca.kernel
import mvcca.linear
from mvcca import NCCA, config_context
from mvcca.linear import CovarianceCCA

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # of fits to tiny data

ESTIMATORS = [*contract.ESTIMATORS, CovarianceCCA(), NCCA()]


def test_every_public_estimator_is_in_the_table():
    modules = [mvcca.linear, mvcca.kernel]
    if find_spec("torch"):
        modules.append(import_module("mvcca.deep"))
    public = {
        value
        for module in modules
        for value in (getattr(module, name) for name in module.__all__)
        if isinstance(value, type) and hasattr(value, "fit")
    }
    assert public <= {type(estimator) for estimator in ESTIMATORS}


# ---- storages ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Storage:
    """Where and in what precision the rows of a view are held; `tol` is what that costs."""

    name: str
    hold: Callable[[np.ndarray, Path], Any]
    block_rows: int | None = None
    tol: float = 1e-8

    def __call__(self, blocks: Mapping[str, np.ndarray], folder: Path) -> dict[str, Any]:
        return {name: self.hold(X, folder / f"{name}.npy") for name, X in blocks.items()}

    def context(self) -> Any:
        return config_context(block_rows=self.block_rows) if self.block_rows else nullcontext()


def in_file(X: np.ndarray, path: Path) -> np.ndarray:
    np.save(path, X)
    return np.load(path, mmap_mode="r")


def in_chunks(X: np.ndarray, _: Path) -> Any:
    return da.from_array(X, chunks=(max(1, min(len(X), 37)), max(1, X.shape[1])))


STORAGES = [
    Storage("dense", lambda X, _: X),
    Storage("csr", lambda X, _: sp.csr_array(X)),
    Storage("float32", lambda X, _: X.astype(np.float32), tol=1e-3),
    Storage("several blocks", lambda X, _: X, block_rows=13),
    Storage("Dask", in_chunks),
    Storage("file", in_file, block_rows=13),
]


@dataclass
class Case:
    """One estimator on rows in one storage."""

    estimator: Any
    storage: Storage
    folder: Path

    def blocks(self, n: int = N) -> dict[str, np.ndarray]:
        return {name: X[:n] for name, X in contract.blocks_for(self.estimator).items()}

    def fit(self, blocks: Mapping[str, np.ndarray], y: Any = LABELS, **parameters: Any) -> Any:
        held = self.storage(blocks, self.folder)
        with self.storage.context():
            return clone(self.estimator).set_params(**parameters).fit(held, y)

    def scores(
        self, model: Any, blocks: Mapping[str, np.ndarray], method: str = "transform"
    ) -> dict[str, np.ndarray]:
        with self.storage.context():
            found = getattr(model, method)(self.storage(blocks, self.folder))
            return {name: np.asarray(scores) for name, scores in found.items()}

    @property
    def has_weights_by_feature(self) -> bool:
        deep_or_kernel = (*contract.DEEP, *contract.KERNEL)
        return self.estimator not in deep_or_kernel and not isinstance(self.estimator, NCCA)

    @contextmanager
    def finite_or_refused(self) -> Any:
        """Numbers, or one clear error; never NaN."""
        try:
            yield
        except (ValueError, ArithmeticError) as error:
            if not str(error).strip():
                raise


def assert_finite(scores: Mapping[str, np.ndarray]) -> None:
    for name, values in scores.items():
        assert np.isfinite(values).all(), name


# ---- rows ----------------------------------------------------------------------------------------


def nan_and_infinity(case: Case) -> None:
    for value, word in ((np.nan, "NaN"), (np.inf, "infinity")):
        blocks = case.blocks()
        blocks["text"] = blocks["text"].copy()
        blocks["text"][3, 1] = value
        with pytest.raises(ValueError, match=rf"View 'text'.*(?i:{word})"):
            case.fit(blocks)
        model = case.fit(case.blocks())
        with pytest.raises(ValueError, match=rf"View 'text'.*(?i:{word})"):
            case.scores(model, blocks)


def constant_column(case: Case) -> None:
    blocks = case.blocks()
    blocks["text"] = np.insert(blocks["text"], 2, 0.1, axis=1)
    model = case.fit(blocks)
    assert_finite(case.scores(model, blocks))
    if case.has_weights_by_feature:
        assert (model.weights_["text"][2] == 0).all()


def constant_view(case: Case) -> None:
    blocks = case.blocks()
    blocks["text"] = np.full((N, 5), 0.1)
    with pytest.raises(ValueError, match=r"[Vv]iew 'text' has no variance"):
        case.fit(blocks)


def constant_wide_view(case: Case) -> None:
    blocks = case.blocks(20)
    blocks["text"] = np.full((20, 30), 0.1)
    with pytest.raises(ValueError, match=r"[Vv]iew 'text' has no variance"):
        case.fit(blocks, LABELS[:20])


def duplicate_columns(case: Case) -> None:
    blocks = case.blocks()
    blocks["text"] = np.tile(blocks["text"], (1, 2))
    assert_finite(case.scores(case.fit(blocks), blocks))


def fewer_rows_than_features(case: Case) -> None:
    rng = np.random.default_rng(2)
    turned = {n: X @ rng.standard_normal((X.shape[1], 30)) for n, X in case.blocks(25).items()}
    blocks = {n: X + 0.1 * rng.standard_normal(X.shape) for n, X in turned.items()}
    assert_finite(case.scores(case.fit(blocks, LABELS[:25]), blocks))


def too_few_rows_or_columns(case: Case) -> None:
    for n in (0, 1):
        with pytest.raises(ValueError, match=rf"{n} sample\(s\)"):
            case.fit(case.blocks(n), LABELS[:n])
    with pytest.raises(ValueError, match=r"0 feature\(s\)"):
        case.fit({**case.blocks(), "text": np.zeros((N, 0))})
    with case.finite_or_refused():
        two = case.blocks(2)
        assert_finite(case.scores(case.fit(two, LABELS[:2]), two))


def number_of_components(case: Case) -> None:
    if not contract.asks(case.estimator, "n_components"):
        return
    for wrong in (0, -1, 2.5, "2"):
        with pytest.raises(InvalidParameterError, match="n_components"):
            case.fit(case.blocks(), n_components=wrong)
    with case.finite_or_refused():  # of neighbours: as many as there are rows
        assert case.fit(case.blocks(), n_components=80).n_components_ <= 80


def huge_and_tiny_units(case: Case) -> None:
    expected = None
    if case.estimator in contract.LINEAR and case.storage.name != "float32":
        expected = contract.strengths(case.fit(case.blocks()))
    for scale in (1e150, 1e-150, 1e300):
        blocks = {name: X * scale for name, X in case.blocks().items()}
        with np.errstate(all="ignore"), case.finite_or_refused():
            model = case.fit(blocks)
            assert_finite(case.scores(model, blocks))
            if expected is not None:
                np.testing.assert_allclose(contract.strengths(model), expected, rtol=1e-8)
                continue
        assert expected is None or scale == 1e300  # where an error is allowed


def mean_far_from_zero(case: Case) -> None:
    offset = 1e2 if case.storage.name == "float32" else 1e5
    moved = {name: X + offset for name, X in case.blocks().items()}
    if case.estimator in contract.DEEP:  # units matter to gradients: training may collapse
        with case.finite_or_refused():
            assert_finite(case.scores(case.fit(moved), moved))
        return
    model = case.fit(moved)
    assert_finite(case.scores(model, moved))
    if case.estimator in [*contract.LINEAR, *contract.COVARYING]:
        found, expected = (contract.strengths(m) for m in (model, case.fit(case.blocks())))
        np.testing.assert_allclose(found, expected, rtol=max(1e-8, case.storage.tol))


def input_is_not_written(case: Case) -> None:
    held = case.storage(case.blocks(), case.folder)
    if case.storage.name in ("dense", "csr", "float32", "several blocks"):
        held = {name: contract.freeze(X) for name, X in held.items()}
        with case.storage.context(), contract.untouched(held, LABELS):
            clone(case.estimator).fit(held, LABELS).transform(held)
    elif case.storage.name == "file":
        before = [path.read_bytes() for path in sorted(case.folder.iterdir())]
        with case.storage.context():
            clone(case.estimator).fit(held, LABELS).transform(held)
        assert [path.read_bytes() for path in sorted(case.folder.iterdir())] == before


def no_matrices_of_numbers(case: Case) -> None:
    if case.storage.name in ("csr", "float32"):
        return
    complex_rows = {name: X + 1j for name, X in case.blocks().items()}
    cubes = {name: X[:, :, None] for name, X in case.blocks().items()}
    for bad in (complex_rows, cubes):
        if bad is cubes and case.storage.name == "Dask":
            continue
        with pytest.raises((ValueError, TypeError), match=r"(?i)complex|2-D|shape"):
            case.fit(bad)


def mismatched_rows(case: Case) -> None:
    blocks = case.blocks()
    blocks["text"] = blocks["text"][:80]
    with pytest.raises(ValueError, match="image: 90, text: 80"):
        case.fit(blocks)
    if case.estimator._supervised:
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            case.fit(case.blocks(), LABELS[:80])


def bad_labels(case: Case) -> None:
    if not case.estimator._supervised:
        return
    with_nan = LABELS.astype(float)
    with_nan[3, 1] = np.nan
    for y in (with_nan, np.ones(N, dtype=int), LABELS[:, :, None], np.ma.masked_equal(LABELS, 1)):
        with pytest.raises(ValueError, match=r"(?i)label|NaN|mask|y"):
            case.fit(case.blocks(), y)


def bad_bandwidth(case: Case) -> None:
    if "sigma" not in case.estimator.get_params():
        return
    for sigma in (0, -1.0, np.nan, np.inf):
        with pytest.raises(InvalidParameterError, match="sigma"):
            case.fit(case.blocks(), sigma=sigma)
    assert_finite(case.scores(case.fit(case.blocks(), sigma=1e-320), case.blocks()))


def repeated_rows(case: Case) -> None:
    blocks = case.blocks()
    twice = {name: np.r_[X, X] for name, X in blocks.items()}
    model = case.fit(twice, np.r_[LABELS, LABELS])
    scores = case.scores(model, twice)
    assert_finite(scores)
    for values in scores.values():
        np.testing.assert_allclose(values[:N], values[N:], atol=1e-5 * np.abs(values).max())


def bad_queries(case: Case) -> None:
    model, blocks = case.fit(case.blocks()), case.blocks()
    with pytest.raises(ValueError, match="View 'text' has 4 features"):
        case.scores(model, {"text": blocks["text"][:, :4]})
    with pytest.raises(ValueError, match="Unknown view 'smell'"):
        case.scores(model, {"smell": blocks["text"]})
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        case.scores(model, {"text": blocks["text"][:0]})


def the_same_model_in_every_storage(case: Case) -> None:
    model = case.fit(case.blocks())
    expected = clone(case.estimator).fit(case.blocks(), LABELS)
    tol = 1e-3 if case.estimator in contract.DEEP else case.storage.tol
    np.testing.assert_allclose(
        contract.strengths(model), contract.strengths(expected), atol=tol * 10, rtol=tol
    )
    if case.estimator in contract.DEEP or case.storage.name == "float32":
        return  # float32 steps of a training grow apart
    for method in contract.projections(expected):
        wanted = getattr(expected, method)(case.blocks())
        for name, values in case.scores(model, case.blocks(), method).items():
            contract.assert_same_scores(values, wanted[name], 1e-7)


def signs_and_order(case: Case) -> None:
    blocks, order = case.blocks(), np.random.default_rng(1).permutation(N)
    model = case.fit(blocks)
    values = contract.strengths(model)
    if hasattr(model, "eigenvalues_"):
        assert (np.diff(values) <= 1e-12).all()
    if case.estimator in POSITION_BLIND:
        turned = case.fit({name: X[order] for name, X in blocks.items()}, LABELS[order])
        np.testing.assert_allclose(
            contract.strengths(turned), values, rtol=max(1e-9, case.storage.tol)
        )
        for method in contract.projections(model):
            found, wanted = (case.scores(m, blocks, method) for m in (turned, model))
            for name in wanted:
                contract.assert_same_scores(found[name], wanted[name], max(1e-7, case.storage.tol))


def batches(case: Case) -> None:
    if case.estimator not in ADDING:
        return
    blocks, model = case.blocks(), clone(case.estimator)
    with case.storage.context():
        for rows in (slice(0, 40), slice(40, N)):
            folder = case.folder / f"{rows.start}"  # MLCCA reads rows of earlier batches again
            folder.mkdir()
            held = case.storage({n: X[rows] for n, X in blocks.items()}, folder)
            model.partial_fit(held, LABELS[rows])
        expected = case.fit(blocks)
        tol = max(1e-9, case.storage.tol)
        np.testing.assert_allclose(
            contract.strengths(model), contract.strengths(expected), rtol=tol, atol=tol
        )
        held = case.storage({n: X[:, :3] for n, X in blocks.items()}, case.folder)
        with pytest.raises(ValueError, match="features"):
            model.partial_fit(held, LABELS)


def as_many_classes_as_rows(case: Case) -> None:
    if case.estimator._supervised:
        with case.finite_or_refused():
            model = case.fit(case.blocks(), np.arange(N))
            assert_finite(case.scores(model, case.blocks()))


ROWS: dict[str, Callable[[Case], None]] = {
    "1 NaN and infinity": nan_and_infinity,
    "2 a constant column": constant_column,
    "3 a constant view": constant_view,
    "4 duplicate columns": duplicate_columns,
    "5 fewer rows than features": fewer_rows_than_features,
    "6 too few rows or columns": too_few_rows_or_columns,
    "7 number of components": number_of_components,
    "8 huge and tiny units": huge_and_tiny_units,
    "9 a mean far from zero": mean_far_from_zero,
    "10 input is not written": input_is_not_written,
    "11 no matrices of real numbers": no_matrices_of_numbers,
    "13 views of different heights": mismatched_rows,
    "14 bad labels": bad_labels,
    "15 bad bandwidths": bad_bandwidth,
    "17 repeated rows": repeated_rows,
    "18 bad queries": bad_queries,
    "33 the model of dense rows": the_same_model_in_every_storage,
    "35 signs and order": signs_and_order,
    "40 batches": batches,
    "48 a constant view with more features than rows": constant_wide_view,
    "50 as many classes as rows": as_many_classes_as_rows,
}


def is_told_apart(row: str, estimator: Any, storage: Storage) -> bool:
    """Networks share one `fit`: those after the first are tried in every storage on one row."""
    return (
        estimator not in contract.DEEP[1:]
        or storage.name == "dense"
        or ROWS[row] is the_same_model_in_every_storage
    )


def is_quick(estimator: Any, storage: Storage) -> bool:
    """One estimator per family on dense rows, and one in every storage."""
    return estimator is FAMILIES[0] or (estimator in FAMILIES and storage.name == "dense")


@pytest.mark.parametrize(
    ("row", "estimator", "storage"),
    [
        pytest.param(
            row,
            estimator,
            storage,
            id=f"{row}-{' '.join(repr(estimator).split())[:40]}-{storage.name}",
            marks=() if is_quick(estimator, storage) else pytest.mark.slow,
        )
        for row in ROWS
        for estimator in ESTIMATORS
        for storage in STORAGES
        if is_told_apart(row, estimator, storage)
    ],
)
def test_what_must_survive(row, estimator, storage, tmp_path):
    ROWS[row](Case(estimator, storage, tmp_path))


# ---- rows with tests of their own ----------------------------------------------------------------

ELSEWHERE = {
    10: ["test_contract.py::test_every_form_of_the_same_numbers_gives_the_same_model"],
    12: [
        "test_contract.py::test_one_sparse_view_among_dense_ones_gives_the_same_model",
        "test_dask.py::test_sparse_chunks_stay_sparse",
    ],
    16: ["test_contract.py::test_label_vectors_far_from_zero_in_float32_keep_their_distances"],
    19: [
        "test_dask.py::test_workers_killed_one_after_the_other_change_no_bit",
        "test_dask.py::test_a_worker_killed_at_a_random_moment_changes_no_bit",
    ],
    20: [
        "test_dask.py::test_moments_too_large_for_a_worker_are_refused_with_bytes",
        "test_dask.py::test_rows_that_kill_every_worker_are_named_with_their_bytes",
    ],
    21: ["test_sources.py::test_a_graph_that_carries_its_data_is_warned_of"],
    22: [
        "test_dask.py::test_transform_of_dask_arrays_computes_nothing",
        "test_dask.py::test_no_method_computes_scores_of_dask_arrays_before_they_are_asked_for",
    ],
    23: [
        "test_archive.py::test_a_full_disk_leaves_the_old_file_and_nothing_else",
        "test_persistence.py::test_a_disk_that_is_full_leaves_the_model_that_was_there",
    ],
    24: [
        "test_archive.py::test_every_truncation_is_refused",
        "test_archive.py::test_garbage_is_refused",
        "test_archive.py::test_a_header_that_lies_is_refused_before_anything_is_allocated",
    ],
    25: ["test_archive.py::test_every_changed_byte_is_refused_or_means_the_same"],
    26: [
        "test_archive.py::test_a_pickle_is_refused_and_not_run",
        "test_persistence.py::test_a_pickled_model_is_refused_and_not_run",
    ],
    27: ["test_archive.py::test_an_npz_file_is_refused"],
    28: [
        "test_lapack.py::test_ctrl_c_ends_a_fit_in_the_middle_of_a_decomposition",
        "test_large_data.py::test_an_interrupted_fit_leaves_the_estimator_as_it_was",
        "test_dask.py::test_an_interrupted_fit_leaves_no_tasks_behind",
    ],
    29: [
        "test_large_data.py::test_an_interrupted_fit_goes_on_from_its_checkpoint_bit_for_bit",
        "test_faults.py::test_a_command_that_is_killed_leaves_what_was_whole_and_can_be_repeated",
    ],
    30: [
        "test_contract.py::test_four_fits_at_once_give_what_one_after_the_other_gives",
        "test_contract.py::test_pickle_joblib_and_deepcopy_project_the_same",
    ],
    31: ["test_contract.py::test_fork_after_the_kernels_have_run_gives_the_same"],
    32: [
        "test_contract.py::test_the_number_of_blas_threads_changes_no_correlation",
        "test_threads.py::test_the_number_of_threads_changes_no_bit_of_a_statistic",
    ],
    34: ["test_backends.py::test_rows_on_a_device_give_the_model_of_numpy_rows"],
    36: ["test_contract.py::test_without_a_home_or_a_folder_to_write_to_fits_run_uncached"],
    37: ["test_backends.py::test_a_device_that_is_not_there_is_refused_by_what_is_missing"],
    38: ["test_contract.py::test_a_library_that_is_missing_is_named_with_the_extra_to_install"],
    39: ["test_threads.py::test_work_and_blas_together_use_the_threads_that_blas_may_use"],
    41: ["test_precision.py::test_ill_conditioned_float32_rows_give_the_model_of_float64"],
    42: [
        "test_precision.py::test_sparse_rows_far_from_zero_give_the_model_of_dense_ones",
        "test_contract.py::test_repeated_entries_of_sparse_rows_add_up",
    ],
    43: [
        "test_contract.py::test_frames_with_other_row_labels_are_refused_unless_those_are_default",
        "test_contract.py::test_columns_of_a_dataframe_in_another_order_are_refused",
    ],
    44: ["test_contract.py::test_views_without_a_label_in_common_are_refused_by_name"],
    45: [
        "test_checkpoint.py::test_a_fit_that_is_done_removes_its_own_files_only",
        "test_archive.py::test_devices_pipes_and_sockets_are_not_replaced",
    ],
    46: [
        "test_checkpoint.py::test_one_changed_number_in_memory_is_another_fit",
        "test_large_data.py::test_a_checkpoint_of_other_data_is_refused",
    ],
    47: [
        "test_cli_files.py::test_a_malformed_file_is_one_line_in_every_command",
        "test_faults.py::test_malformed_inputs_of_commands_are_a_line",
    ],
    49: ["test_index.py::test_every_answer_while_rows_are_added_is_that_of_a_state_that_existed"],
    51: [
        "test_cli.py::test_names_with_dollars_are_drawn_as_they_are",
        "test_plotting.py::test_names_with_dollars_are_drawn_as_they_are",
        "test_cli_files.py::test_names_of_files_need_not_be_text",
    ],
    52: ["test_lower_bounds.py::test_the_oldest_constraints_are_the_lower_bounds_of_the_project"],
    53: ["test_dask.py::test_an_interrupted_fit_leaves_no_tasks_behind"],
}


@cache
def functions_of(file: str) -> set[str]:
    tree = ast.parse((Path(__file__).parent / file).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_row_is_in_the_table_or_has_a_test_elsewhere():
    assert {*ELSEWHERE, *(int(row.split()[0]) for row in ROWS)} == set(range(1, 54))


@pytest.mark.parametrize("number", ELSEWHERE)
def test_tests_elsewhere_are_there(number):
    for node in ELSEWHERE[number]:
        file, name = node.split("::")
        assert name in functions_of(file)
