"""Ids of an index in a file, and in place of hits that there are none of.

Strings are stored as their UTF-8 bytes, since a file holds arrays of numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_PADDED_BYTES = 64 * 2**20  # an array of strings pads each of them to the longest
_PADDING = 16  # at most, in units of the text


def stored_ids(ids: np.ndarray) -> Any:
    """Ids as an array of numbers, or as text and where each string ends in it."""
    if ids.dtype.kind != "U":
        return ids
    strings = [text.encode() for text in ids.tolist()]
    ends = np.cumsum([len(text) for text in strings], dtype=np.int64)
    text = np.frombuffer(b"".join(strings), dtype=np.uint8)
    _check_padding(text, ends)
    return {"text": text, "ends": ends}


def restored_ids(stored: Any) -> np.ndarray:
    """The ids that `stored_ids` took apart."""
    if not isinstance(stored, dict):
        return np.asarray(stored)
    text, ends = stored["text"], stored["ends"]
    starts = np.concatenate([[0], ends])
    if (
        (text.dtype, ends.dtype) != (np.uint8, np.int64)
        or text.ndim != 1
        or starts[-1] != len(text)
        or (np.diff(starts) < 0).any()
    ):
        raise ValueError("the ends of ids do not belong to their text")
    _check_padding(text, ends)
    whole = text.tobytes()
    return np.array(
        [whole[a:b].decode() for a, b in zip(starts[:-1].tolist(), ends.tolist(), strict=True)],
        dtype=str,
    )


def no_ids(shape: tuple[int, int], dtype: np.dtype) -> np.ndarray:
    """An array for ids of this type, of which none is there yet: -1, or empty strings."""
    if dtype.kind in "USO":
        return np.full(shape, "", dtype)
    if dtype.kind == "M":
        return np.full(shape, "NaT", dtype)
    return np.full(shape, -1, np.result_type(dtype, np.int8))  # which makes unsigned ids signed


def _check_padding(text: np.ndarray, ends: np.ndarray) -> None:
    longest = int(np.diff(ends, prepend=0).max(initial=0))
    n_bytes = 4 * len(ends) * longest
    if n_bytes > max(_PADDED_BYTES, _PADDING * len(text)):
        raise ValueError(
            f"{len(ends):,} ids padded to the longest, of {longest:,} bytes, would take "
            f"{n_bytes:,} bytes. Use shorter ids, or numbers."
        )
