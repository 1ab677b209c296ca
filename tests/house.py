"""What the package's structure costs its readers, counted from the source and by the interpreter.

Run ``python tests/house.py`` to print all figures, with a goal beside those that are to fall;
`test_house.py` holds the bounds. Another checkout is measured with
``PYTHONPATH=CHECKOUT python tests/house.py``.
"""

from __future__ import annotations

import ast
import inspect
import io
import json
import os
import re
import subprocess
import sys
import tokenize
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stdout
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

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


@cache
def tree_of(source: Path) -> ast.Module:
    return ast.parse(source.read_text(encoding="utf-8"))


def room_of(source: Path) -> str:
    return source.relative_to(PACKAGE).parts[0].removesuffix(".py")


def name_of(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def calls(source: Path) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree_of(source)) if isinstance(node, ast.Call))


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


@cache
def imported_names(source: Path) -> list[tuple[str, ...]]:
    """Dotted names that are imported anywhere in a file, as tuples of their parts."""
    package = ("mvcca", *source.relative_to(PACKAGE).parent.parts)
    found: list[tuple[str, ...]] = []
    for node in ast.walk(tree_of(source)):
        if isinstance(node, ast.Import):
            found += (tuple(alias.name.split(".")) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else ()
            module = (*start, *(node.module.split(".") if node.module else ()))
            found += ((*module, alias.name) for alias in node.names)
    return found


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
    for node in ast.walk(tree_of(source)):
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


def classes() -> list[tuple[Path, ast.ClassDef]]:
    return [
        (source, node)
        for source in sources()
        for node in ast.walk(tree_of(source))
        if isinstance(node, ast.ClassDef)
    ]


def methods_of(node: ast.ClassDef) -> list[str]:
    return [entry.name for entry in node.body if isinstance(entry, ast.FunctionDef)]


def class_names() -> list[str]:
    return [place(source, node) + " " + node.name for source, node in classes()]


def doubled_class_names() -> list[str]:
    """Names that several classes have, a leading underscore aside."""
    counts = Counter(node.name.lstrip("_") for _, node in classes())
    return sorted(name for name, count in counts.items() if count > 1)


def exported() -> dict[str, Any]:
    """What the rooms and the package itself offer, by room and name."""
    rooms = [name for name in top_level() if (PACKAGE / name).is_dir()]
    modules = {room: import_module(f"mvcca.{room}") for room in rooms}
    return {
        f"{room}.{name}": getattr(module, name)
        for room, module in modules.items()
        for name in getattr(module, "__all__", ())
    }


def fields_of(room: str, name: str) -> list[str]:
    """Fields of a dataclass, without those that it inherits."""
    (node,) = (node for source, node in classes() if (room_of(source), node.name) == (room, name))
    return [ast.unparse(entry.target) for entry in node.body if isinstance(entry, ast.AnnAssign)]


def methods_of_bases() -> list[str]:
    """Methods that the bases of estimators define."""
    bases = ("MultiViewEstimator", "StatisticEstimator")
    return [
        f"{node.name}.{method}"
        for source, node in classes()
        if room_of(source) == "base" and node.name in bases
        for method in methods_of(node)
    ]


def classes_with(method: str) -> list[str]:
    return [node.name for _, node in classes() if method in methods_of(node)]


DECOMPOSITIONS = {"svd", "svds", "svdvals", "eigh", "eigsh", "eigvalsh", "eigh_tridiagonal"}
SPLITTERS = {"KFold", "GroupKFold", "StratifiedKFold", "ShuffleSplit", "check_cv", "splits_of"}


def modules_that_call(names: set[str], *but: str) -> list[str]:
    """Modules that call any of these functions, outside the rooms named last."""
    return [
        source.relative_to(PACKAGE).as_posix()
        for source in sources()
        if room_of(source) not in but and names & {name_of(call.func) for call in calls(source)}
    ]


CHOSEN = re.compile(r"\b(regs?|ridges?|settings?|variants?|folds?)\b")


def modules_that_choose_settings() -> list[str]:
    """Modules that take the largest or smallest value of settings: what a tuning engine ends with.

    A statement counts if it holds `argmax`, or `max` with a key, and names ridges or settings.
    """
    found = []
    for source in sources():
        statements = ast.walk(ast.parse(source.read_text()))
        simple = (own for own in statements if isinstance(own, ast.Assign | ast.Return))
        if any(takes_best(own) and CHOSEN.search(ast.unparse(own)) for own in simple):
            found.append(source.relative_to(PACKAGE).as_posix())
    return found


def takes_best(statement: ast.stmt) -> bool:
    return any(
        name_of(call.func) in ("argmax", "argmin")
        or (name_of(call.func) in ("max", "min") and any(own.arg == "key" for own in call.keywords))
        for call in ast.walk(statement)
        if isinstance(call, ast.Call)
    )


def callables() -> dict[str, Any]:
    """Public functions and classes of the package, and public methods of these classes."""
    found: dict[str, Any] = {}
    for name, thing in exported().items():
        if not callable(thing) or not getattr(thing, "__module__", "").startswith("mvcca"):
            continue
        found[name] = thing
        for key in dir(thing) if inspect.isclass(thing) else ():
            method = inspect.getattr_static(thing, key)
            method = getattr(method, "__func__", method)
            if not key.startswith("_") and inspect.isfunction(method):
                found[f"{name}.{key}"] = method
    return {name: thing for name, thing in found.items() if thing.__module__.startswith("mvcca")}


def parameters(*, of_estimators: bool) -> list[str]:
    """Parameters of public callables, or of the constructors of classes with `fit` alone."""
    found = []
    for name, thing in callables().items():
        is_estimator = inspect.isclass(thing) and hasattr(thing, "fit")
        if (is_estimator or not of_estimators) and not is_exception(thing):
            names = list(inspect.signature(thing).parameters)
            found += [f"{name}({parameter})" for parameter in names if parameter != "self"]
    return found


def is_exception(thing: Any) -> bool:
    return inspect.isclass(thing) and issubclass(thing, BaseException)


def import_circles() -> list[str]:
    """Modules of the package that import each other, for types too; one entry per circle."""
    names = {
        ("mvcca", *source.relative_to(PACKAGE).with_suffix("").parts): source
        for source in sources()
    }
    names |= {name[:-1]: source for name, source in names.items() if name[-1] == "__init__"}
    offered = {  # by packages, from their modules
        ("mvcca", *source.parent.relative_to(PACKAGE).parts, name[-1]): name
        for source in sources()
        if source.name == "__init__.py"
        for name in imported_names(source)
    }
    edges: dict[Path, set[Path]] = {}
    for source in sources():
        imported = {defined_in(name, names, offered) for name in imported_names(source)}
        known = {names.get(name) or names.get(name[:-1]) for name in imported}
        edges[source] = {found for found in known if found and found.name != "__init__.py"}
    reached = {source: reached_from(source, edges) for source in edges}
    circles = {
        frozenset(other for other in found if source in reached[other])
        for source, found in reached.items()
        if source in found
    }
    return sorted(
        ", ".join(sorted(source.relative_to(PACKAGE).as_posix() for source in circle))
        for circle in circles
    )


def defined_in(
    name: tuple[str, ...],
    modules: Mapping[tuple[str, ...], Path],
    offered: Mapping[tuple[str, ...], tuple[str, ...]],
) -> tuple[str, ...]:
    """A name by its module, where it was imported from a package that only offers it."""
    while name not in modules and offered.get(name, name) != name:
        name = offered[name]
    return name


def reached_from(source: Path, edges: dict[Path, set[Path]]) -> set[Path]:
    found: set[Path] = set()
    waiting = deque(edges[source])
    while waiting:
        if (other := waiting.popleft()) not in found:
            found.add(other)
            waiting.extend(edges[other])
    return found


# What is to fall: title, how it is counted, and the goal of the redesign.
RATCHETS: dict[str, tuple[Callable[[], list[str]], int]] = {
    "classes": (class_names, 340),
    "class names with several meanings": (doubled_class_names, 0),
    "names that rooms export": (lambda: sorted(exported()), 240),
    "fields of Problem": (lambda: fields_of("problem", "Problem"), 7),
    "fields of Rows": (lambda: fields_of("problem", "Rows"), 7),
    "methods of the bases of estimators": (methods_of_bases, 24),
    "modules that call a singular value or eigenvalue decomposition": (
        lambda: modules_that_call(DECOMPOSITIONS, "machine", "deep"),
        13,
    ),
    "modules that choose among settings": (modules_that_choose_settings, 1),
    "modules that make folds": (lambda: modules_that_call(SPLITTERS), 3),
    "constructor parameters of classes with fit": (lambda: parameters(of_estimators=True), 524),
    "parameters of public callables": (lambda: parameters(of_estimators=False), 2200),
    "classes with their own HTML": (lambda: classes_with("_repr_html_"), 1),
    "classes with their own to_frame": (lambda: classes_with("to_frame"), 1),
    "import circles": (import_circles, 0),
}


class Executed(NamedTuple):
    """What of the package a call runs."""

    functions: dict[str, list[str]]  # of each file; comprehensions do not count
    depth: int  # the most functions that wait for each other

    @property
    def n_functions(self) -> int:
        return sum(map(len, self.functions.values()))


def executed_by(function: Callable[[], Any]) -> Executed:
    """Run a function, and watch the main thread."""
    codes: set[Any] = set()
    inside, depths = [0], [0]
    is_own = cache(lambda code: PACKAGE in Path(code.co_filename).parents)

    def watch(frame: Any, event: str, _: Any) -> None:
        code = frame.f_code
        if event not in ("call", "return") or code.co_name.startswith("<") or not is_own(code):
            return
        if event == "call":
            codes.add(code)
            inside[0] += 1
            depths[0] = max(depths[0], inside[0])
        else:
            inside[0] -= 1

    sys.setprofile(watch)
    try:
        function()
    finally:
        sys.setprofile(None)
    ran: dict[str, set[str]] = {}
    for code in codes:
        file = Path(code.co_filename).relative_to(PACKAGE).as_posix()
        ran.setdefault(file, set()).add(code.co_qualname)
    return Executed({file: sorted(names) for file, names in ran.items()}, depths[0])


def pair_of_arrays() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(200, 3))
    X, Y = (Z @ rng.normal(size=(3, p)) + rng.normal(size=(200, p)) for p in (8, 6))
    return X, Y


def run_of_cca() -> Executed:
    X, Y = pair_of_arrays()
    model = mvcca.CCA(2).fit(X, Y)  # imports and caches
    return executed_by(lambda: model.fit(X, Y))


def run_of_compare() -> Executed:
    data = mvcca.datasets.load_digits_views()
    views, labels = data.views[:150], data.labels[:150]
    mvcca.compare("default", views, labels, cv=2, budget=None)  # imports and caches
    return executed_by(lambda: mvcca.compare("default", views, labels, cv=5, budget=None))


def run_of_sam() -> Executed:
    from mvcca.deep import SAM

    data = mvcca.datasets.load_digits_views()
    views, labels = data.views[:200], data.labels[:200]
    model = SAM(4, max_epochs=2, random_state=0).fit(views, labels)
    return executed_by(lambda: model.fit(views, labels))


def run_of_index() -> Executed:
    views = mvcca.datasets.load_digits_views().views[:300]
    model = mvcca.CCA(4, reg=0.1).fit(views)
    gallery, query = {"right": views["right"][200:]}, {"left": views["left"][:3]}

    def add_and_search() -> None:
        mvcca.RetrievalIndex(model).add(gallery).search(query, "right", k=5)

    add_and_search()
    return executed_by(add_and_search)


def run_of_migration() -> Executed:
    from mvcca.interop.migration import fit_migration

    old, new = pair_of_arrays()
    fit_migration(old, new)
    return executed_by(lambda: fit_migration(old, new))


def run_of_mvmlcca() -> Executed:
    data = mvcca.datasets.load_digits_views()
    views, labels = data.views[:200], data.labels[:200]
    model = mvcca.MVMLCCA(4).fit(views, labels)
    return executed_by(lambda: model.fit(views, labels))


def run_of_command() -> Executed:
    from mvcca.cli import main as run_command

    with TemporaryDirectory() as folder, redirect_stdout(io.StringIO()):
        options = ["fit", "--method", "cca", "--output", str(Path(folder, "model.mvcca"))]
        for name, rows in zip("xy", pair_of_arrays(), strict=True):
            file = Path(folder, f"{name}.npy")
            np.save(file, rows)
            options += ["--view", f"{name}={file}"]
        run_command(options)
        return executed_by(lambda: run_command(options))


RUNS = {
    "CCA.fit": run_of_cca,
    "MVMLCCA.fit": run_of_mvmlcca,
    "SAM.fit": run_of_sam,
    "fit_migration": run_of_migration,
    "mvcca fit": run_of_command,
    'compare("default", cv=5)': run_of_compare,
    "index add and search": run_of_index,
}


def executed_alone(title: str) -> Executed:
    """What a run executes in a fresh process with one BLAS thread."""
    answer = subprocess.run(
        [sys.executable, __file__, "--run", title],
        check=True,
        capture_output=True,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )
    return Executed(*json.loads(answer.stdout))


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["--run"]:
        sys.stdout.write(json.dumps(RUNS[arguments[1]]()))
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
    for title, (count, goal) in RATCHETS.items():
        found = count()
        write(f"{len(found):>6}  {title} (goal {goal:,})\n")
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
        write(
            f"{len(ran.functions):>6}  files and {ran.n_functions} functions run by {title}, "
            f"{ran.depth} deep\n"
        )
        for file, functions in sorted(ran.functions.items()) if "-v" in arguments else ():
            names = ", ".join(functions)
            write(f"            {file:<34}{len(functions):>3}  {names}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
