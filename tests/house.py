"""What the package's structure costs its readers, counted from the source and by the interpreter.

Run ``python tests/house.py`` to print all figures; `test_house.py` holds the bounds. Another
checkout is measured with ``PYTHONPATH=CHECKOUT python tests/house.py``.
"""

from __future__ import annotations

import ast
import io
import json
import os
import re
import subprocess
import sys
import tokenize
from collections import Counter, deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import mvcca

PACKAGE = Path(mvcca.__file__).parent
TESTS = PACKAGE.parent / "tests"
BLOCKS = "blocks"  # the only room that tells kinds of storage apart

# Calls that ask how rows are stored.
STORAGE_CALLS = {"issparse", "is_device_array", "is_dask_collection", "isspmatrix"}
# Classes of stored rows, in `isinstance`.
STORAGE_CLASSES = {
    "RowSource",
    "Selection",
    "CheckedRows",
    "DaskRows",
    "DaskSource",
    "DenseBlock",
    "SparseBlock",
    "DeviceBlock",
    "SourceBlock",
    "csr_array",
    "csr_matrix",
    "coo_array",
    "csc_array",
    "memmap",
}


def sources() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def room_of(source: Path) -> str:
    return source.relative_to(PACKAGE).parts[0].removesuffix(".py")


def name_of(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def calls(source: Path) -> Iterator[ast.Call]:
    tree = ast.parse(source.read_text(encoding="utf-8"))
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def place(source: Path, node: ast.AST) -> str:
    return f"{source.relative_to(PACKAGE).as_posix()}:{node.lineno}"


def asks_for_storage(call: ast.Call) -> bool:
    """Whether a call tells kinds of storage apart."""
    name = name_of(call.func)
    if name in STORAGE_CALLS:
        return True
    if name == "isinstance" and len(call.args) == 2:
        asked = {name_of(node) for node in ast.walk(call.args[1]) if isinstance(node, ast.expr)}
        return bool(asked & STORAGE_CLASSES)
    if name == "hasattr" and len(call.args) == 2:
        attribute = getattr(call.args[1], "value", None)
        return attribute in {"dask", "toarray", "tocsr", "__dask_graph__", "is_cuda"}
    return (
        name.startswith("is_")
        and name.endswith("_array")
        and name_of(getattr(call.func, "value", ast.Name("", ast.Load())))
        in {"compat", "array_api_compat"}
    )


def storage_tests() -> list[str]:
    """Kinds of storage that are told apart outside their room."""
    return [
        place(source, call)
        for source in sources()
        if room_of(source) != BLOCKS
        for call in calls(source)
        if asks_for_storage(call)
    ]


def copied_estimators() -> list[str]:
    """Shallow copies of `self` or of another object, which are estimators outside the blocks."""
    return [
        place(source, call)
        for source in sources()
        if room_of(source) != BLOCKS
        for call in calls(source)
        if (isinstance(call.func, ast.Name) and call.func.id == "copy")
        or (name_of(call.func) == "copy" and name_of(getattr(call.func, "value", None)) == "copy")
    ]


def imported_names(source: Path, *, with_types: bool = True) -> Iterator[tuple[str, ...]]:
    """Dotted names that are imported anywhere in a file, as tuples of their parts.

    Without `with_types`, those that only type checkers import are left out.
    """
    package = ("mvcca", *source.relative_to(PACKAGE).parent.parts)
    nodes: deque[ast.AST] = deque([ast.parse(source.read_text(encoding="utf-8"))])
    while nodes:
        node = nodes.popleft()
        only_types = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        nodes.extend(node.orelse if only_types and not with_types else ast.iter_child_nodes(node))
        if isinstance(node, ast.Import):
            yield from (tuple(alias.name.split(".")) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else ()
            module = (*start, *(node.module.split(".") if node.module else ()))
            yield from ((*module, alias.name) for alias in node.names)


def is_private(part: str) -> bool:
    return part.startswith("_") and not part.startswith("__")


def private_imports() -> list[str]:
    """Private modules and names that a room imports from another room."""
    return [
        f"{source.relative_to(PACKAGE).as_posix()}: {'.'.join(name)}"
        for source in sources()
        for name in imported_names(source)
        if name[0] == "mvcca" and len(name) > 1 and name[1] != room_of(source)
        if any(map(is_private, name[1:]))
    ]


def private_imports_of_tests() -> list[str]:
    """Private modules and names that tests import from the package."""
    return [
        f"{source.name}: {'.'.join(name)}"
        for source in sorted(TESTS.rglob("*.py"))
        for name in names_in(source)
        if name[0] == "mvcca" and any(map(is_private, name[1:]))
    ]


def names_in(source: Path) -> Iterator[tuple[str, ...]]:
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (tuple(alias.name.split(".")) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((*node.module.split("."), alias.name) for alias in node.names)


def top_level() -> list[str]:
    return sorted(entry.name for entry in PACKAGE.iterdir() if entry.name != "__pycache__")


def placeholders() -> list[str]:
    """Marks in sources and pages that text was to follow."""
    root = PACKAGE.parent
    pages = [root / "README.md", *(root / "docs").glob("*.rst"), *(root / "docs").glob("*/*.rst")]
    written = [page for page in pages if page.parent.name not in ("generated", "gallery")]
    return [
        f"{file.relative_to(root)}:{number}"
        for file in [*sources(), *written]
        for number, line in enumerate(file.read_text("utf-8").splitlines(), 1)
        if re.search("@" + "@|TO" + "DO|FIX" + "ME", line)
    ]


def code_lines(source: Path) -> int:
    """Lines with code: no blank lines, comments or docstrings."""
    text = source.read_text(encoding="utf-8")
    lines: set[int] = set()
    skipped = {
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENDMARKER,
    }
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in skipped:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            value = getattr(first, "value", None)
            if isinstance(first, ast.Expr) and isinstance(getattr(value, "value", None), str):
                lines -= set(range(first.lineno, (first.end_lineno or 0) + 1))
    return len(lines)


def lines_by_room() -> Counter[str]:
    counts: Counter[str] = Counter()
    for source in sources():
        counts[room_of(source)] += code_lines(source)
    return counts


def comment_share() -> float:
    """Comments per 1,000 lines of the package."""
    texts = [source.read_text(encoding="utf-8") for source in sources()]
    comments = sum(len(re.findall(r"(?m)^[^\"'\n]*#", text)) for text in texts)
    return 1000 * comments / sum(text.count("\n") for text in texts)


def executed_by(function: Callable[[], Any]) -> dict[str, set[str]]:
    """Files of the package that run, and the functions of each; comprehensions do not count."""
    codes = set()

    def watch(frame: Any, event: str, _: Any) -> None:
        if event == "call":
            codes.add(frame.f_code)

    sys.setprofile(watch)
    try:
        function()
    finally:
        sys.setprofile(None)
    ran: dict[str, set[str]] = {}
    for code in codes:
        path = Path(code.co_filename)
        if PACKAGE in path.parents and not code.co_name.startswith("<"):
            ran.setdefault(path.relative_to(PACKAGE).as_posix(), set()).add(code.co_qualname)
    return ran


def pair_of_arrays() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(200, 3))
    X, Y = (Z @ rng.normal(size=(3, p)) + rng.normal(size=(200, p)) for p in (8, 6))
    return X, Y


def run_of_cca() -> dict[str, set[str]]:
    X, Y = pair_of_arrays()
    model = mvcca.CCA(2).fit(X, Y)  # imports and caches
    return executed_by(lambda: model.fit(X, Y))


def run_of_compare() -> dict[str, set[str]]:
    data = mvcca.datasets.load_digits_views()
    views, labels = data.views[:150], data.labels[:150]
    mvcca.compare("default", views, labels, cv=2, budget="1s")  # imports and caches
    return executed_by(lambda: mvcca.compare("default", views, labels, cv=5, budget="5s"))


def run_of_sam() -> dict[str, set[str]]:
    from mvcca.deep import SAM

    data = mvcca.datasets.load_digits_views()
    views, labels = data.views[:200], data.labels[:200]
    model = SAM(4, max_epochs=2, random_state=0).fit(views, labels)
    return executed_by(lambda: model.fit(views, labels))


def run_of_index() -> dict[str, set[str]]:
    views = mvcca.datasets.load_digits_views().views[:300]
    model = mvcca.CCA(4, reg=0.1).fit(views)
    gallery, query = {"right": views["right"][200:]}, {"left": views["left"][:3]}

    def add_and_search() -> None:
        mvcca.RetrievalIndex(model).add(gallery).search(query, "right", k=5)

    add_and_search()
    return executed_by(add_and_search)


RUNS = {
    "CCA.fit": run_of_cca,
    'compare("default", cv=5)': run_of_compare,
    "SAM.fit": run_of_sam,
    "index add and search": run_of_index,
}


def executed_alone(title: str) -> dict[str, set[str]]:
    """What a run executes in a fresh process with one BLAS thread."""
    answer = subprocess.run(
        [sys.executable, __file__, "--run", title],
        check=True,
        capture_output=True,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )
    return {file: set(functions) for file, functions in json.loads(answer.stdout).items()}


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["--run"]:
        ran = {file: sorted(functions) for file, functions in RUNS[arguments[1]]().items()}
        sys.stdout.write(json.dumps(ran))
        return
    lists = {
        "top-level entries": top_level(),
        "kinds of storage told apart outside mvcca/blocks": storage_tests(),
        "copies of estimators": copied_estimators(),
        "private imports across rooms": private_imports(),
        "private imports of tests": private_imports_of_tests(),
        "unfinished texts": placeholders(),
    }
    write = sys.stdout.write
    for title, found in lists.items():
        write(f"{len(found):>6}  {title}\n")
        if "-v" in arguments:
            write("".join(f"            {entry}\n" for entry in found))
    rooms = lines_by_room()
    write(f"{sum(rooms.values()):>6}  lines of code: ")
    write(", ".join(f"{room} {n}" for room, n in rooms.most_common()) + "\n")
    of_tests = sum(map(code_lines, TESTS.rglob("*.py")))
    write(f"{of_tests:>6}  lines of code in tests\n")
    write(f"{comment_share():>6.0f}  comments per 1,000 lines\n")
    for title, run in RUNS.items():
        ran = run()
        n_functions = sum(map(len, ran.values()))
        write(f"{len(ran):>6}  files and {n_functions} functions run by {title}\n")
        for file, functions in sorted(ran.items()) if "-v" in arguments else ():
            names = ", ".join(sorted(functions))
            write(f"            {file:<34}{len(functions):>3}  {names}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
