"""Mutations of the package: what `mutants.py` can change in its functions, and where.

Not changed are texts, annotations, errors, warnings, compiled functions, and what runs at import.
"""

from __future__ import annotations

import ast
import hashlib
import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

PAIRS: list[tuple[Any, Any]] = [
    (ast.Add, ast.Sub),
    (ast.Mult, ast.Div),
    (ast.Lt, ast.LtE),
    (ast.Gt, ast.GtE),
    (ast.Eq, ast.NotEq),
    (ast.And, ast.Or),
]
FLIPS: dict[type, Any] = dict(PAIRS) | {new: old for old, new in PAIRS}


class Mutant(NamedTuple):
    """One change, named by file, function and statement so that other checkouts have it too."""

    file: str  # in the package
    function: str  # qualified
    statement: str  # digest of its code, without that of its body
    repeat: int  # how many such statements of the function come before it
    node: int  # which of the nodes of the statement that can be changed
    change: str  # new code; of the lines of tables, old and new
    line: int
    segment: tuple[int, int]  # bytes of the node in the file

    @property
    def room(self) -> str:
        return self.file.partition("/")[0].removesuffix(".py")

    def written(self, source: bytes, probe: int | None = None) -> bytes:
        """The file with the change, or with a probe in its place."""
        start, stop = self.segment
        new = self.change.partition("  ->  ")[2].encode()
        if probe is not None:
            new = b"__import__('mutant_probe').hit(%d, %b)" % (probe, source[start:stop])
        return source[:start] + b"(" + new + b")" + source[stop:]


def changed(node: ast.AST, is_index: bool) -> ast.expr | None:
    """The expression with another sign, comparison or constant, if it has one."""
    match node:
        case ast.BinOp(left, op, right) if type(op) in FLIPS:
            texts = ast.JoinedStr | ast.List | ast.Tuple | ast.Dict
            values = [getattr(side, "value", None) for side in (left, right)]
            if isinstance(left, texts) or isinstance(right, texts) or str in map(type, values):
                return None  # a TypeError, which any test would notice
            return ast.BinOp(left, FLIPS[type(op)](), right)
        case ast.Compare(left, [op, *ops], rights) if type(op) in FLIPS:
            return ast.Compare(left, [FLIPS[type(op)](), *ops], rights)
        case ast.BoolOp(op, values):
            return ast.BoolOp(FLIPS[type(op)](), values)
        case ast.UnaryOp(ast.Not(), operand):
            return operand
        case ast.Constant(bool() as value):
            return ast.Constant(not value)
        case ast.Constant(int() as value):
            return ast.Constant(-value - 1 if is_index and value else value + 1)
        case ast.Constant(float() as value) if value:
            return ast.Constant(1.5 * value if value > 0.25 else 2 * value)
        case ast.Name("i" | "j" | "k") if is_index:
            return ast.BinOp(node, ast.Add(), ast.Constant(1))
    return None


def expressions(node: ast.AST, is_index: bool = False) -> Iterator[tuple[Any, bool]]:
    """Expressions of a statement that may change, and whether they are an index."""
    yield node, is_index
    for field, value in ast.iter_fields(node):
        if field == "annotation" or (field == "args" and isinstance(node, ast.Lambda)):
            continue
        for child in value if isinstance(value, list) else [value]:
            warns = isinstance(child, ast.Call) and "warn" in ast.unparse(child.func)
            warns = warns or getattr(child, "arg", "") == "stacklevel"
            other = ast.stmt | ast.JoinedStr | ast.pattern | ast.ExceptHandler | ast.match_case
            if isinstance(child, ast.AST) and not isinstance(child, other) and not warns:
                yield from expressions(child, isinstance(node, ast.Subscript) and field == "slice")


def statements(node: ast.AST, name: str = "") -> Iterator[tuple[str, ast.stmt]]:
    """Statements that run when a function is called, with its qualified name."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            if not any("jit" in ast.unparse(own) for own in child.decorator_list):
                mark = ":" if isinstance(child, ast.FunctionDef) else "."
                yield from statements(child, f"{name}{child.name}{mark}")
        elif not (isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)):
            if isinstance(child, ast.stmt) and name.endswith(":"):
                yield name.strip(":"), child
            yield from statements(child, name)


def mutants_of(file: Path, package: Path) -> Iterator[Mutant]:
    source = file.read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    seen: Counter[tuple[str, str]] = Counter()
    for function, statement in statements(ast.parse(source)):
        own = [node for node in ast.iter_child_nodes(statement) if not isinstance(node, ast.stmt)]
        header = type(statement).__name__ + " " + " ".join(map(ast.dump, own))
        digest = hashlib.sha256(header.encode()).hexdigest()[:12]
        if isinstance(statement, ast.Raise):
            continue
        found = ((node, changed(node, is_index)) for node, is_index in expressions(statement))
        for number, (node, new) in enumerate(found):
            if new is None:
                continue
            name = (file.relative_to(package).as_posix(), function, digest)
            change = f"{ast.unparse(node)}  ->  {ast.unparse(new)}"
            start = starts[node.lineno - 1] + node.col_offset
            segment = (start, starts[node.end_lineno - 1] + node.end_col_offset)
            yield Mutant(*name, seen[function, digest], number, change, node.lineno, segment)
        seen[function, digest] += 1


def all_mutants(tree: Path) -> list[Mutant]:
    package = tree / "mvcca"
    return [own for file in sorted(package.rglob("*.py")) for own in mutants_of(file, package)]


def drawn(mutants: list[Mutant], number: int, seed: int) -> list[Mutant]:
    """One mutant of each of some lines; of each room in proportion to its lines."""
    rng = random.Random(seed)
    rooms: dict[str, dict[tuple[str, int], list[Mutant]]] = defaultdict(lambda: defaultdict(list))
    for own in mutants:
        rooms[own.room][own.file, own.line].append(own)
    n_lines = sum(map(len, rooms.values()))
    shares = {room: number * len(lines) / n_lines for room, lines in rooms.items()}
    rest = number - sum(map(int, shares.values()))
    larger = set(sorted(shares, key=lambda room: int(shares[room]) - shares[room])[:rest])
    return [
        rng.choice(rooms[room][line])
        for room in sorted(rooms)
        for line in rng.sample(sorted(rooms[room]), int(shares[room]) + (room in larger))
    ]


def found_again(names: list[Mutant], mutants: list[Mutant]) -> dict[Mutant, int]:
    """Mutants of another checkout with their place in `names`, also where a function has moved."""
    by_name = defaultdict(list)
    for own in mutants:
        by_name[own[1:6]].append(own)
    found = {}
    for place, name in enumerate(names):
        same = by_name[name[1:6]]
        same = [own for own in same if own.file == name.file] or same
        if len(same) == 1:
            found[same[0]] = place
    return found
