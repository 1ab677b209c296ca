"""Files of arrays and a document: whole or not there, and every byte checked (rows 23-27)."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import pickle
import resource
import signal
import socket
import stat
import struct
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

from mvcca.machine import archive as _archive
from mvcca.machine.archive import ModelFileError, read_archive, write_archive
from mvcca.machine.replacing import replacing
from mvcca.persistence._values import sparse_of

ARRAYS = {
    "matrix": np.arange(6.0).reshape(2, 3),
    "columns first": np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3)),
    "every other": np.arange(20.0).reshape(4, 5)[::2, ::2],
    "of columns": np.arange(20.0).reshape(4, 5).T[1:3],
    "three axes": np.arange(24, dtype=np.int16).reshape(2, 3, 4).transpose(2, 0, 1),
    "one number": np.array(3, dtype=np.uint8),
    "no rows": np.empty((0, 4), dtype=np.int32),
    "truths": np.array([True, False]),
    "not finite": np.array([np.nan, np.inf, -0.0]),
}
CONTENT = {"Σ": ["text", None, True, 10**30, 0.1, {"b": 1, "a": [[]]}], "empty": {}}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "file.mvcca"


@pytest.fixture
def small(path: Path) -> Path:
    """A file that is short enough to try every byte of it."""
    write_archive(path, {"x": np.arange(4.0), "y": np.array([1, 2], np.int32)}, {"k": 3})
    return path


def assert_same_arrays(arrays: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    assert list(arrays) == list(expected)
    for name, array in expected.items():
        assert arrays[name].dtype == array.dtype
        assert arrays[name].shape == array.shape
        assert arrays[name].tobytes() == array.tobytes()


def same_as_ever(path: Path, expected: Any) -> bool:
    """Whether a file is read as it was written; False if it is refused."""
    try:
        arrays, content = read_archive(path)
    except ModelFileError:
        return False
    assert_same_arrays(arrays, expected[0])
    assert content == expected[1]
    return True


def forge(path: Path, arrays: dict[str, np.ndarray], **changes: Any) -> None:
    """What someone could write who knows the format, with parts of the document changed."""
    write_archive(path, arrays, {})
    tensors = json.loads(metadata_of(path))["tensors"]
    document = {"format": 1, "tensors": tensors, "content": {}, **changes}
    both = json.dumps([document["tensors"], document["content"]])
    document = {"sha256": hashlib.sha256(both.encode()).hexdigest(), **document}
    save_file(arrays, path, metadata={"mvcca": json.dumps(document)})


def metadata_of(path: Path) -> str:
    raw = path.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    return json.loads(raw[8 : 8 + length])["__metadata__"]["mvcca"]


def header(header: Any, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


# ---- what comes back -----------------------------------------------------------------------------


def test_arrays_and_document_come_back_as_they_were(path):
    write_archive(path, ARRAYS, CONTENT)
    arrays, content = read_archive(path)
    assert_same_arrays(arrays, ARRAYS)
    assert content == CONTENT
    assert list(content["Σ"][5]) == ["b", "a"]


def test_arrays_come_back_in_the_order_they_had_in_memory(path):
    write_archive(path, ARRAYS, {})
    arrays, _ = read_archive(path)
    assert arrays["matrix"].flags.c_contiguous
    assert arrays["columns first"].flags.f_contiguous
    assert arrays["of columns"].flags.f_contiguous


def test_arrays_come_back_writable_and_do_not_change_the_file(path):
    write_archive(path, ARRAYS, {})
    read_archive(path)[0]["matrix"][:] = 7
    assert_same_arrays(read_archive(path)[0], ARRAYS)


def test_bytes_of_other_machines_keep_their_numbers(path):
    write_archive(path, {"x": np.arange(3, dtype=">f8")}, {})
    np.testing.assert_array_equal(read_archive(path)[0]["x"], [0.0, 1.0, 2.0])


def test_the_same_arrays_make_the_same_bytes(path, tmp_path):
    write_archive(path, ARRAYS, CONTENT)
    write_archive(tmp_path / "again", ARRAYS, CONTENT)
    assert path.read_bytes() == (tmp_path / "again").read_bytes()


def test_other_programs_can_read_the_arrays(path):
    write_archive(path, {"x": ARRAYS["matrix"]}, {})
    np.testing.assert_array_equal(load_file(path)["x"], ARRAYS["matrix"])


@pytest.mark.skipif(
    int(safetensors.__version__.split(".")[1]) < 8, reason="safetensors copies before 0.8"
)
def test_writing_copies_no_contiguous_array(path):
    array = np.asfortranarray(np.zeros((1000, 1000)))
    tracemalloc.start()
    write_archive(path, {"x": array}, {})
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < array.nbytes / 4


@pytest.mark.parametrize("cls", [sp.csr_array, sp.csc_matrix])
@pytest.mark.parametrize("part", ["indices", "indptr"])
def test_a_sparse_matrix_comes_back_from_its_arrays_unless_they_point_outside(path, cls, part):
    matrix = cls(np.eye(5, 7) + np.eye(5, 7, 2))
    write_archive(path, {n: getattr(matrix, n) for n in ("data", "indices", "indptr")}, {})
    parts, _ = read_archive(path)
    back = sparse_of(parts, matrix.shape, cls)
    assert type(back) is cls
    np.testing.assert_array_equal(back.toarray(), matrix.toarray())
    with pytest.raises(ValueError, match="ind"):
        sparse_of({**parts, part: parts[part] + 1000}, matrix.shape, cls)


@pytest.mark.parametrize(
    "array",
    [np.array(["a"]), np.array([None]), np.array([1j]), np.array([1], "M8[s]"), np.longdouble(1)],
    ids=lambda array: str(array.dtype),
)
def test_arrays_that_are_not_of_numbers_are_refused_by_name(path, array):
    with pytest.raises(TypeError, match=r"'mine' is of .*; a file holds arrays of bool, int8"):
        write_archive(path, {"mine": np.asarray(array)}, {})
    assert not path.exists()


def test_a_document_that_is_not_json_is_refused(path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_archive(path, {}, {"x": float("nan")})
    assert not path.exists()


def test_a_document_too_long_to_be_read_again_is_not_written(path, monkeypatch):
    monkeypatch.setattr(_archive, "_HEADER_BYTES", 4000)
    with pytest.raises(ValueError, match="at most 1,000 are possible"):
        write_archive(path, {}, {"x": "x" * 1000})
    assert not path.exists()


WIDE = {
    "numbers": [1] * 900_000,
    "lists": [[]] * 250_000,
    "mappings": [{}] * 250_000,
    "names": {str(i): None for i in range(450_000)},
}


@pytest.mark.slow
@pytest.mark.parametrize("wide", WIDE.values(), ids=WIDE)
def test_a_document_of_too_many_values_is_neither_written_nor_parsed(path, wide, monkeypatch):
    with pytest.raises(ValueError, match=r"at most 800,000 are possible\. Store"):
        write_archive(path, {}, {"x": wide})
    assert not path.exists()
    monkeypatch.setattr(_archive, "_HEADER_VALUES", 10**9)
    write_archive(path, {}, {"x": wide})
    monkeypatch.undo()
    tracemalloc.start()
    with pytest.raises(ModelFileError, match="values, more than mvcca writes"):
        read_archive(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2.5 * path.stat().st_size


# ---- row 23: a write that fails leaves what was there --------------------------------------------


def fail(error: BaseException) -> Any:
    def function(*_: Any, **__: Any) -> None:
        raise error

    return function


@pytest.fixture(params=["new file", "old file"])
def target(request, path):
    if request.param == "old file":
        write_archive(path, {"old": np.ones(3)}, {"old": True})
    return path


def assert_as_before(path: Path, before: bytes | None) -> None:
    assert (path.read_bytes() if path.exists() else None) == before
    assert os.listdir(path.parent) == ([path.name] if before is not None else [])


def content_of(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def test_a_full_disk_leaves_the_old_file_and_nothing_else(target):
    before, limits = content_of(target), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(OSError, match=str(target)) as caught:
            write_archive(target, {"x": np.zeros(1_000_000)}, {})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert caught.value.errno == errno.EFBIG
    assert_as_before(target, before)


@pytest.mark.parametrize("call", ["fsync", "chmod", "replace"])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "full"), KeyboardInterrupt()], ids=repr)
def test_what_interrupts_the_end_of_a_write_leaves_the_old_file(target, monkeypatch, call, error):
    before = content_of(target)
    with monkeypatch.context() as patch:
        patch.setattr(os, call, fail(error))
        with pytest.raises(type(error)):
            write_archive(target, ARRAYS, {})
    assert_as_before(target, before)


def test_an_interrupt_in_the_middle_of_a_write_leaves_the_old_file(target):
    def interrupted() -> None:
        with replacing(target) as file:
            file.write(b"half")
            raise KeyboardInterrupt

    before = content_of(target)
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert_as_before(target, before)


def test_what_a_killed_process_left_is_removed_by_the_next_write(target):
    child = os.fork()
    if not child:
        with replacing(target) as file:
            file.write(b"half")
            file.flush()
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    assert len(list(target.parent.glob(".*.part"))) == 1
    write_archive(target, ARRAYS, {})
    assert os.listdir(target.parent) == [target.name]


def test_files_of_similar_names_are_left_alone(path):
    others = (".file.mvcca.part", ".file.mvcca.0123.part", ".other.mvcca.0123456789abcdef.part",
              "file.mvcca.0123456789abcdef.part", ".file.mvcca.0123456789ABCDEF.part", ".tmpAbCdEf",
              )  # fmt: skip
    for name in others:
        (path.parent / name).write_text("mine")
    write_archive(path, ARRAYS, {})
    assert sorted(os.listdir(path.parent)) == sorted([*others, path.name])


def test_a_file_that_is_being_written_is_not_removed_by_another_write(path):
    with replacing(path) as slow:
        write_archive(path, ARRAYS, {})
        slow.write(b"last")
    assert path.read_bytes() == b"last"


def test_devices_pipes_and_sockets_are_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/dev/full")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
    for name in ("/dev/full", "/dev/null", tmp_path / "pipe", tmp_path / "link",
                 tmp_path / "socket"):  # fmt: skip
        kind = stat.S_IFMT(os.stat(name).st_mode)
        with pytest.raises(OSError, match=f"{name} is not a regular file"):
            write_archive(name, ARRAYS, {})
        assert stat.S_IFMT(os.stat(name).st_mode) == kind
    assert sorted(os.listdir(tmp_path)) == ["link", "pipe", "socket"]


def test_other_writers_of_the_format_agree_on_the_layout(path):
    """Numbers are aligned, and the reader of safetensors, which checks offsets, takes the file."""
    arrays = {"a": np.arange(3, dtype=np.int8), "b": np.arange(2.0), "c": np.array(True)}
    write_archive(path, arrays, {})
    raw = path.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + length])
    assert length % 8 == 0
    assert {name: header[name]["data_offsets"] for name in arrays} == {
        "b": [0, 16], "a": [16, 19], "c": [19, 20]
    }  # fmt: skip
    assert_same_arrays(dict(sorted(load_file(path).items())), arrays)


def test_the_file_is_on_the_disk_before_it_takes_its_name(path, monkeypatch):
    calls: list[str] = []
    for call in ("fsync", "replace"):
        real = getattr(os, call)
        monkeypatch.setattr(
            os, call, lambda *args, real=real, call=call: (calls.append(call), real(*args))[1]
        )
    write_archive(path, ARRAYS, {})
    assert calls == ["fsync", "replace", "fsync"]  # the file, its name, the folder


def test_a_missing_folder_is_the_usual_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        write_archive(tmp_path / "no" / "file", {}, {})


def test_a_folder_is_not_replaced(tmp_path):
    with pytest.raises(IsADirectoryError):
        write_archive(tmp_path, {}, {})
    assert os.listdir(tmp_path) == []


def test_a_symbolic_link_stays_and_its_file_is_replaced(path, tmp_path):
    (tmp_path / "folder").mkdir()
    write_archive(tmp_path / "folder" / "real", {}, {"which": "old"})
    path.symlink_to(Path("folder") / "real")
    write_archive(path, {}, {"which": "new"})
    assert path.is_symlink()
    assert read_archive(tmp_path / "folder" / "real")[1] == {"which": "new"}
    assert os.listdir(tmp_path / "folder") == ["real"]


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_a_new_file_may_be_read_by_whom_the_process_says(path, mask):
    before = os.umask(mask)
    try:
        write_archive(path, {}, {})
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask


def test_a_replaced_file_may_be_read_by_whom_it_could(small):
    small.chmod(0o640)
    write_archive(small, {}, {})
    assert stat.S_IMODE(small.stat().st_mode) == 0o640


def test_readers_among_several_writers_see_whole_files_only(path):
    def write(number: int) -> None:
        write_archive(path, {"x": np.full(20_000, float(number))}, {"number": number})

    def read(_: int) -> tuple[float, float, int]:
        arrays, content = read_archive(path)
        return arrays["x"].min(), arrays["x"].max(), content["number"]

    write(0)
    with ThreadPoolExecutor(4) as pool:
        writes = [pool.submit(write, number) for number in range(20)]
        seen = [future.result() for future in [pool.submit(read, i) for i in range(20)]]
        for future in writes:
            future.result()
    assert all(low == high == number for low, high, number in seen)
    assert os.listdir(path.parent) == [path.name]


# ---- row 25: no changed byte goes unnoticed ------------------------------------------------------


def test_every_changed_byte_is_refused_or_means_the_same(small):
    expected, raw = read_archive(small), bytearray(small.read_bytes())
    first_of_data = 8 + int.from_bytes(raw[:8], "little")
    for position in range(len(raw)):
        for mask in (0x01, 0x20, 0xFF):
            changed = raw.copy()
            changed[position] ^= mask
            small.write_bytes(changed)
            assert not same_as_ever(small, expected) or position < first_of_data


@given(st.data())
def test_no_changed_stretch_of_bytes_goes_unnoticed(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "stretch.mvcca"
    write_archive(path, {"x": np.arange(4.0)}, {"k": [1, "two"]})
    expected, raw = read_archive(path), path.read_bytes()
    start = data.draw(st.integers(0, len(raw)))
    stop = data.draw(st.integers(start, len(raw)))
    path.write_bytes(raw[:start] + data.draw(st.binary(max_size=20)) + raw[stop:])
    same_as_ever(path, expected)


def test_a_changed_array_is_named(small):
    raw = bytearray(small.read_bytes())
    raw[-1] ^= 1
    small.write_bytes(raw)
    with pytest.raises(
        ModelFileError, match=r"damaged: array 'y' does not match its checksum.*another copy"
    ):
        read_archive(small)


def test_arrays_that_changed_places_are_noticed(path):
    forge(path, {"x": np.zeros(3), "y": np.ones(3)})
    raw = path.read_bytes()
    path.write_bytes(raw[:-48] + raw[-24:] + raw[-48:-24])
    with pytest.raises(ModelFileError, match="array 'x' does not match"):
        read_archive(path)


# ---- rows 24, 26 and 27: what is not ours --------------------------------------------------------


def test_every_truncation_is_refused(small):
    expected, raw = read_archive(small), small.read_bytes()
    for length in range(len(raw)):
        small.write_bytes(raw[:length])
        assert not same_as_ever(small, expected)


@given(st.binary(max_size=300))
def test_garbage_is_refused(tmp_path_factory, garbage):
    path = tmp_path_factory.getbasetemp() / "garbage.mvcca"
    path.write_bytes(garbage)
    with pytest.raises(ModelFileError):
        read_archive(path)


def array_of(shape: list[int], start: int, stop: int, dtype: str = "F64") -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, stop]}


HEADERS = {
    "longer than the file": struct.pack("<Q", 10**6) + b"{}",
    "longer than memory": struct.pack("<Q", 2**63) + b"{}",
    "longer than allowed": struct.pack("<Q", 10**9) + b"{}",
    "no JSON": header(b"{nonsense}"),
    "nested deeply": header(b'{"a":' * 50_000),
    "not ours": header({"x": array_of([1], 0, 8)}, bytes(8)),
    "other metadata": header({"__metadata__": {"format": "pt"}}),
    "overlapping": header({"a": array_of([1], 0, 8), "b": array_of([1], 0, 8)}, bytes(8)),
    "gap": header({"a": array_of([1], 8, 16)}, bytes(16)),
    "beyond the end": header({"a": array_of([2**40], 0, 2**43)}, bytes(8)),
    "backwards": header({"a": array_of([1], 8, 0)}, bytes(8)),
    "shape too large to count": header({"a": array_of([2**61], 0, 0)}),
    "shape unlike the bytes": header({"a": array_of([2], 0, 8)}, bytes(8)),
    "more bytes than described": header({}, bytes(8)),
    "negative shape": header({"a": array_of([-1], 0, 8)}, bytes(8)),
    "unknown type": header({"a": array_of([1], 0, 8, "O")}, bytes(8)),
}


@pytest.mark.parametrize("raw", HEADERS.values(), ids=HEADERS)
def test_a_header_that_lies_is_refused_before_anything_is_allocated(path, raw):
    path.write_bytes(raw)
    tracemalloc.start()
    with pytest.raises(ModelFileError, match=str(path)):
        read_archive(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5_000_000


DOCUMENTS = {
    "no format": {"format": None},
    "format zero": {"format": 0},
    "content is a list": {"content": []},
    "arrays are missing": {"tensors": {}},
    "arrays are a list": {"tensors": ["x"]},
    "no checksum": {"tensors": {"x": {"order": "C"}}},
    "checksum of another kind": {"tensors": {"x": {"order": "C", "sha256": 7}}},
    "array described by a number": {"tensors": {"x": 3}},
    "arrays that are not there": {"tensors": {"x": {}, "y": {}}},
    "checksum of the document": {"sha256": "0" * 64},
}


@pytest.mark.parametrize("changes", DOCUMENTS.values(), ids=DOCUMENTS)
def test_a_document_of_another_make_is_refused(path, changes):
    forge(path, {"x": np.ones(2)}, **changes)
    with pytest.raises(ModelFileError, match=r"file\.mvcca is damaged: .*Expected the file as"):
        read_archive(path)


@pytest.mark.parametrize("text", ["", "[", "[]", "3", "{}", "[" * 100_000, '{"format": 1}'])
def test_a_description_that_is_none_is_refused(path, text):
    save_file({"x": np.ones(2)}, path, metadata={"mvcca": text})
    with pytest.raises(ModelFileError, match="its description is not what mvcca writes"):
        read_archive(path)


def test_types_that_numpy_has_not_are_refused(path):
    forge(path, {"x": np.ones(1, np.uint16)})
    path.write_bytes(path.read_bytes().replace(b'"U16"', b'"F16"'))
    with pytest.raises(ModelFileError, match="'x' does not match"):
        read_archive(path)
    path.write_bytes(path.read_bytes().replace(b'"F16"', b'"BF16"').replace(b"}} ", b"}}"))
    with pytest.raises(ModelFileError):
        read_archive(path)


def test_a_file_of_a_later_format_says_to_update(path):
    forge(path, {}, format=2)
    with pytest.raises(ModelFileError, match=r"format 2, .* reads formats up to 1\. Update mvcca"):
        read_archive(path)


def test_a_pickle_is_refused_and_not_run(path, tmp_path):
    class Payload:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "ran"),)

    path.write_bytes(pickle.dumps(Payload()))
    with pytest.raises(ModelFileError, match=r"mvcca\.save; pickles, \.npz and other"):
        read_archive(path)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("compress", [np.savez, np.savez_compressed])
def test_an_npz_file_is_refused(path, compress):
    with open(path, "wb") as file:
        compress(file, x=np.array([{}], dtype=object), bomb=np.zeros(1_000_000))
    with pytest.raises(ModelFileError, match="does not begin as a safetensors file"):
        read_archive(path)


def test_a_missing_file_is_the_usual_error(path):
    with pytest.raises(FileNotFoundError):
        read_archive(path)


def test_what_is_no_file_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", "/dev/zero"):
        with pytest.raises(ModelFileError, match="is not a regular file"):
            read_archive(path)
