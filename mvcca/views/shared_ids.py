"""Ids that match in part: how many objects views share, which rows are left over, and why.

All doors that match rows by id ask here, so that the same data get the same words everywhere.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from operator import itemgetter
from typing import Any

import numpy as np

from mvcca.blocks.checks import are_positions

_SHARE = 0.2  # of the rows of a view that may be left over without a warning
_SAMPLE = 10_000  # ids left over of a view, in which other spellings are tried
_FEW = 200  # of them, whose beginnings and ends are compared with those of ten times as many
_HALF = 0.5  # of the ids left over that another spelling must match to be named
_LEAST = 2  # ids that a common prefix or suffix, or a header, must match

# What may differ between two spellings of an id, by the words for an id without it.
_SPELLINGS: dict[str, Callable[[str], str]] = {
    "compared as text": str,
    "without the whitespace around them": lambda one: one.strip().strip("\ufeff\u200b").strip(),
    "ignoring case": str.casefold,
    "without leading zeros or .0": lambda one: re.sub(
        r"(?<!\d)0+(?=\d)", "", re.sub(r"(?<=\d)\.0+$", "", one)
    ),
    "ignoring punctuation": lambda one: re.sub(r"[\W_]+", "", one),
}


def matches_in_words(names: Sequence[str], seen: np.ndarray) -> str:
    """Say how many objects all views share, how many each pair of views does, and what is left.

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
    counts = _in_words(names, seen, _alone(seen))
    return text + (f"; in no other view {counts}" if counts else "; no row is left over")


def unmatched(
    ids: Mapping[str, Collection[Any]],
    headers: Mapping[str, Collection[Any]] | None = None,
    *,
    counted: Collection[str] | None = None,
    joint: bool = False,
) -> str | None:
    """Say what to check if many rows are left over, or if other spellings of ids match more.

    Parameters
    ----------
    ids : mapping of str to collection
        Distinct ids of the rows of each view.
    headers : mapping of str to collection, optional
        Names of the columns of each view that has some.
    counted : collection of str, optional
        Views of which at most a fifth of the rows may be left over; by default all.
    joint : bool, default=False
        Whether rows are left over unless all views have them; else unless another view does.

    Returns
    -------
    str or None
        None if nearly all rows match, and no other spelling would match more.
    """
    first, *others = map(set, ids.values())
    if all(own == first for own in others):
        return None
    names, seen = list(ids), _seen(ids)
    partial = ~np.asarray(seen.all(axis=1))
    left = seen & partial[:, None] if joint else _alone(seen)
    cause = why_unmatched(ids, headers)
    judged = [name in (names if counted is None else counted) for name in names]
    is_much = (left.sum(axis=0) > _SHARE * seen.sum(axis=0)) & judged
    if not (is_much.any() or cause):
        return None
    what = "missing from another view" if joint else "in no other view"
    return (
        f"Ids match in part: {matches_in_words(names, seen).split('; ')[0]}. Rows {what}: "
        f"{_in_words(names, seen, left, ids)}. "
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
                    f"{name!r} seems to be transposed: its columns are named by {n_named:,} of "
                    f"{len(ids[other]):,} ids of {other!r}. Transpose it, so that each row is one "
                    "object."
                )
    for (a, first), (b, second) in combinations(ids.items(), 2):
        shared = set(first) & set(second)
        left = _sorted(one for one in first if one not in shared)
        right = _sorted(one for one in second if one not in shared)
        sample = left[:_SAMPLE], right[:_SAMPLE]
        found: list[tuple[int, str, _Spelling]] = [
            (_n_shared(*sample, spell), how, spell) for how, spell in _spellings(a, b, *sample)
        ]
        # Of equals, max takes the first, which is the simplest.
        n_more, how, spell = max(found, key=itemgetter(0))
        if n_more and n_more >= min(map(len, sample)) * _HALF:
            n_all = len(shared) + _n_shared(left, right, spell)
            return (
                f"{how[0].upper()}{how[1:]}, {n_all:,} ids of {a!r} and {b!r} match instead of "
                f"{len(shared):,}: make the ids agree."
            )
    return ""


_Spelling = tuple[Callable[[str], str], Callable[[str], str]]  # of the ids of two views


def _spellings(
    a: str, b: str, first: list[str], second: list[str]
) -> Iterator[tuple[str, _Spelling]]:
    """Ways to spell the ids of two views, in words and as functions, from simple to bold."""
    for how, spell in _SPELLINGS.items():
        yield how, (spell, spell)
    yield "ignoring case, punctuation, whitespace and leading zeros", (_plain, _plain)
    for spell in (str, _plain):
        for end, turned in (("prefix", False), ("suffix", True)):
            p, q = _affixes([*map(spell, first)], [*map(spell, second)], turned)
            named = [f"{end} {own!r} in {name!r}" for own, name in ((p, a), (q, b)) if own]
            if named:
                words = "without the " + " and the ".join(named)
                yield words, (_cut(spell, p, turned), _cut(spell, q, turned))


def _plain(one: str) -> str:
    """An id in the boldest of all spellings."""
    for spell in _SPELLINGS.values():
        one = spell(one)
    return one


def _cut(spell: Callable[[str], str], affix: str, turned: bool) -> Callable[[str], str]:
    def cut(one: str) -> str:
        one = spell(one)
        return one.removesuffix(affix) if turned else one.removeprefix(affix)

    return cut


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


def _n_shared(first: list[str], second: list[str], spelling: _Spelling) -> int:
    """Number of ids that agree in a spelling; 0 if it makes two ids of a view one."""
    a, b = set(map(spelling[0], first)), set(map(spelling[1], second))
    return len(a & b) if len(a) == len(first) and len(b) == len(second) else 0


def _sorted(ids: Iterable[Any]) -> list[str]:
    """Ids as text, so that the first of two views have much in common in most spellings."""
    return sorted(map(_text, ids), key=lambda one: (len(one), one))


def _text(one: Any) -> str:
    return one.decode(errors="replace") if isinstance(one, bytes) else str(one)


def _seen(ids: Mapping[str, Iterable[Any]]) -> np.ndarray:
    sets = [set(own) for own in ids.values()]
    every = list(dict.fromkeys(one for own in ids.values() for one in own))
    return np.array([[one in own for own in sets] for one in every], dtype=bool)


def _alone(seen: np.ndarray) -> np.ndarray:
    """Which rows no other view has, in the form of `seen`."""
    return np.asarray(seen & (seen.sum(axis=1) == 1)[:, None])


def _in_words(
    names: Sequence[str],
    seen: np.ndarray,
    left: np.ndarray,
    ids: Mapping[str, Collection[Any]] | None = None,
) -> str:
    """Counts of the rows left over, with an example of each view if ids are given."""
    every = [] if ids is None else list(dict.fromkeys(one for own in ids.values() for one in own))
    parts = []
    for name, own, mask in zip(names, seen.T, left.T, strict=True):
        if mask.any():
            example = f" (such as {str(every[int(mask.argmax())])!r})" if every else ""
            parts.append(f"{int(mask.sum()):,} of {int(own.sum()):,} of {name!r}{example}")
    return ", ".join(parts)
