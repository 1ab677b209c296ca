"""Ids that match in part: how many objects views share, which rows are left over, and why.

All doors that match rows by id ask here, so that the same data get the same words everywhere.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import combinations
from operator import itemgetter
from typing import Any

import numpy as np

from mvcca.blocks.checks import are_positions

_SAMPLE = 10_000  # ids left over of a view, in which other spellings are tried
_FEW = 200  # of them, whose beginnings and ends are compared with those of ten times as many
_HALF = 0.5  # of the ids left over that another spelling must match to be named
_LEAST = 2  # ids that a common prefix or suffix, or a header, must match

# What may differ between two spellings of an id, by the function that removes the difference.
_PLAIN: dict[str, Callable[[str], str]] = {
    "types": str,
    "spaces": lambda one: one.strip().strip("\ufeff\u200b").strip(),
    "case": str.casefold,
    "zeros": lambda one: re.sub(r"(?<!\d)0+(?=\d)", "", re.sub(r"(?<=\d)\.0+$", "", one)),
    "punctuation": lambda one: re.sub(r"[\W_]+", "", one),
}
_ENDS = {"beginning": "a beginning", "ending": "an ending"}
DIFFERENCES = (*_PLAIN, *_ENDS)  # that `agreeing` may ignore
# What is tried, from simple to bold; types differ in none of the others either.
_ALL = tuple(_PLAIN)[1:]
_TRIED = [*((one,) for one in _PLAIN), _ALL, *((one,) for one in _ENDS)]
_TRIED += [(*own, one) for own in (_ALL[:-1], _ALL) for one in _ENDS]


def rows_by_id(ids: Iterable[Iterable[Any]]) -> tuple[list[Any], np.ndarray]:
    """Distinct ids in order of first occurrence, and the row of each in every view, -1 if none."""
    rows = [{one: row for row, one in enumerate(own)} for own in ids]
    every = list(dict.fromkeys(one for own in rows for one in own))
    index = [[own.get(one, -1) for own in rows] for one in every]
    return every, np.array(index, dtype=int).reshape(len(every), len(rows))


def matches_in_words(names: Sequence[str], seen: np.ndarray) -> str:
    """Say how many objects all views share, and how many each pair of views does.

    Parameters
    ----------
    names : sequence of str
        The views, or their files.
    seen : ndarray of bool, shape (n_objects, n_views)
        Whether each object is seen in each view.
    """
    which = "both" if len(names) == 2 else "all"
    text = f"{int(seen.all(axis=1).sum()):,} in {which} views"
    if len(names) > 2:
        shared = seen.astype(int).T @ seen.astype(int)
        text += ", by pairs " + ", ".join(
            f"{names[a]} and {names[b]} {shared[a, b]:,}"
            for a, b in combinations(range(len(names)), 2)
        )
    return text


def left_in_words(names: Sequence[str], seen: np.ndarray) -> str:
    """Say how many rows of each view no other view has."""
    counts = _in_words(names, seen, _alone(seen))
    return f"in no other view {counts}" if counts else "no row is left over"


def agreeing(ids: Mapping[str, Collection[Any]], differences: Collection[str]) -> dict[str, list]:
    """Spell the ids of all views alike.

    Parameters
    ----------
    ids : mapping of str to collection
        Distinct ids of the rows of each view.
    differences : collection of str
        What may differ: some of `DIFFERENCES`. A beginning or an ending is the one that most ids
        without a counterpart have.

    Returns
    -------
    dict of str to list
        The ids of each view, spelled as in the first view that has the same one.

    Raises
    ------
    ValueError
        If a difference is unknown, or two ids of a view are the same without it.
    """
    for one in differences:
        if one not in DIFFERENCES:
            raise ValueError(f"match_ids: expected some of {', '.join(DIFFERENCES)}, got {one!r}")
    keys: dict[str, list[str]] = {}
    for name, own in ids.items():
        before = list(dict.fromkeys(key for known in keys.values() for key in known))
        cut, keys[name] = _spelled(before, list(own), differences)
        renamed = dict(zip(before, cut, strict=True))
        keys |= {other: [renamed[key] for key in keys[other]] for other in keys if other != name}
    first: dict[str, Any] = {}
    for name, own in ids.items():
        known: dict[str, Any] = {}
        for key, one in zip(keys[name], own, strict=True):
            if key in known:
                raise ValueError(
                    f"{name}: ids {str(known[key])!r} and {str(one)!r} are the same if "
                    f"{_in_words_of(differences)} may differ; rename one of them"
                )
            known[key] = one
        first = known | first
    return {name: [first[key] for key in keys[name]] for name in ids}


def unmatched(
    ids: Mapping[str, Collection[Any]],
    headers: Mapping[str, Collection[Any]] | None = None,
    *,
    counted: Collection[str] | None = None,
    joint: bool = False,
    share: float = 0.2,
) -> str | None:
    """Say what to check if many rows are left over, or if other spellings of ids match more.

    Parameters
    ----------
    ids : mapping of str to collection
        Distinct ids of the rows of each view, by its name as it is shown.
    headers : mapping of str to collection, optional
        Names of the columns of each view that has some.
    counted : collection of str, optional
        Views whose rows may not be left over; by default all.
    joint : bool, default=False
        Whether rows are left over unless all views have them; else unless another view does.
    share : float, default=0.2
        Share of the rows of a view that may be left over.

    Returns
    -------
    str or None
        None if nearly all rows match, and no other spelling would match more.
    """
    first, *others = map(set, ids.values())
    if all(own == first for own in others):
        return None
    names, (every, index) = list(ids), rows_by_id(ids.values())
    seen = index >= 0
    partial = ~np.asarray(seen.all(axis=1))
    left = seen & partial[:, None] if joint else _alone(seen)
    cause = why_unmatched(ids, headers)
    if cause and len(names) == 2:
        return cause
    judged = [name in (names if counted is None else counted) for name in names]
    is_much = (left.sum(axis=0) > share * seen.sum(axis=0)) & judged
    if not (is_much.any() or cause):
        return None
    what = "missing from another view" if joint else "in no other view"
    return (
        f"Ids match in part: {matches_in_words(names, seen)}. Rows {what}: "
        f"{_in_words(names, seen, left, every)}. "
        + (cause or "Check that the ids of all views are written in the same way.")
    )


def why_unmatched(
    ids: Mapping[str, Collection[Any]], headers: Mapping[str, Collection[Any]] | None = None
) -> str:
    """The likely cause of ids that do not match: a header of ids, or other spellings; else ""."""
    for name, header in (headers or {}).items():
        columns = set() if are_positions(list(header)) else {str(one).strip() for one in header}
        for other in ids:
            n_named = sum(str(one).strip() in columns for one in ids[other])
            if other != name and n_named >= max(_LEAST, len(ids[other]) / 2):
                return (
                    f"{name} seems to be transposed: its columns are named by {n_named:,} of "
                    f"{len(ids[other]):,} ids of {other}. Transpose it, so that each row is one "
                    "object."
                )
    for (a, first), (b, second) in combinations(ids.items(), 2):
        shared = set(first) & set(second)
        left = _sorted(one for one in first if one not in shared)
        right = _sorted(one for one in second if one not in shared)
        sample = left[:_SAMPLE], right[:_SAMPLE]
        # Of equals, max takes the first, which is the simplest.
        found = [(len(_pairs(*sample, words)), words) for words in _TRIED]
        n_more, words = max(found, key=itemgetter(0))
        if n_more and n_more >= min(map(len, sample)) * _HALF:
            for one in words[::-1] if len(words) > 1 else ():  # the bolder ones first
                rest = tuple(word for word in words if word != one)
                words = rest if len(_pairs(*sample, rest)) == n_more else words
            pairs = _pairs(left, right, words)
            one, other = map(repr, pairs[0])
            if words == ("types",):
                one, other = (f"{type(next(iter(own))).__name__} {one}" for own in (first, second))
            n = min(len(first), len(second))
            share = f"{len(shared):,} of {n:,} ids are" if shared else f"none of the {n:,} ids are"
            return (
                f"{share} in both {a} and {b}; {len(shared) + len(pairs):,} would be if "
                f"{_in_words_of(words)} did not differ: {one} in {a}, {other} in {b}. Give "
                f"match_ids='{','.join(words)}'"
            )
    return ""


def _in_words_of(differences: Iterable[str]) -> str:
    *others, last = (_ENDS.get(one, one) for one in differences)
    return f"{', '.join(others)} and {last}" if others else last


def _spelled(
    first: Sequence[Any], second: Sequence[Any], words: Collection[str]
) -> tuple[list[str], list[str]]:
    """The ids of two views without these differences."""
    a, b = list(map(_text, first)), list(map(_text, second))
    for word, plain in _PLAIN.items():
        if word in words:
            a, b = list(map(plain, a)), list(map(plain, b))
    for end in _ENDS:
        if end in words:
            shared = set(a) & set(b)
            left, right = (_sorted(one for one in own if one not in shared) for own in (a, b))
            p, q = _affixes(left, right, end == "ending")
            cut = str.removesuffix if end == "ending" else str.removeprefix
            a, b = [cut(one, p) for one in a], [cut(one, q) for one in b]
    return a, b


def _pairs(
    first: Sequence[str], second: Sequence[str], words: Collection[str]
) -> list[tuple[str, str]]:
    """Ids of two views that are the same without these differences.

    There are none if that makes two ids of a view one.
    """
    a, b = _spelled(first, second, words)
    if len({*a}) < len(a) or len({*b}) < len(b):
        return []
    there = dict(zip(b, second, strict=True))
    return [(one, there[key]) for key, one in zip(a, first, strict=True) if key in there]


def _affixes(first: list[str], second: list[str], turned: bool) -> tuple[str, str]:
    """The prefixes, or if `turned` suffixes, without which most of the ids left over agree."""
    first, second = ([one[::-1] if turned else one for one in ids] for ids in (first, second))
    begins: dict[str, list[str]] = {}
    for one in second[: _FEW * 10]:
        for end in _ends(one):
            begins.setdefault(one[end:], []).append(one[:end])
    votes: Counter[tuple[str, str]] = Counter()
    for one in first[:_FEW]:
        own = {(one[:end], q) for end in _ends(one) for q in begins.get(one[end:], ())}
        votes.update(own)
    pairs = [pair for pair, count in votes.items() if count >= _LEAST and pair != ("", "")]
    if not pairs:
        return "", ""
    p, q = min(pairs, key=lambda pair: (-votes[pair], len(pair[0] + pair[1]), pair))
    return (p[::-1], q[::-1]) if turned else (p, q)


def _ends(one: str) -> list[int]:
    """Where a prefix may end: not within a number, since 5 is no prefix of 51."""
    return [end for end in range(len(one)) if not (end and one[end - 1 : end + 1].isdecimal())]


def _sorted(ids: Iterable[Any]) -> list[str]:
    """Ids as text, so that the first of two views have much in common in most spellings."""
    return sorted(map(_text, ids), key=lambda one: (len(one), one))


def _text(one: Any) -> str:
    return one.decode(errors="replace") if isinstance(one, bytes) else str(one)


def _alone(seen: np.ndarray) -> np.ndarray:
    """Which rows no other view has, in the form of `seen`."""
    return np.asarray(seen & (seen.sum(axis=1) == 1)[:, None])


def _in_words(
    names: Sequence[str], seen: np.ndarray, left: np.ndarray, every: Sequence[Any] = ()
) -> str:
    """Counts of the rows left over, with an example of each view if ids are given."""
    parts = []
    for name, own, mask in zip(names, seen.T, left.T, strict=True):
        if mask.any():
            example = f" (such as {str(every[int(mask.argmax())])!r})" if every else ""
            parts.append(f"{int(mask.sum()):,} of {int(own.sum()):,} of {name}{example}")
    return ", ".join(parts)
