"""`mvcca fit`: fit a method to views in files and save the model."""

from __future__ import annotations

import shlex
import warnings
from argparse import Namespace
from collections.abc import Collection
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from sklearn.pipeline import make_pipeline

from mvcca.cli.console import Progress, show
from mvcca.cli.errors import UsageError
from mvcca.cli.inputs import (
    by_name,
    checked_output,
    configured,
    files_of_labels,
    files_of_views,
    read_inputs,
)
from mvcca.cli.missing import MENDS, without_holes
from mvcca.cli.options import NETWORK_FLAGS, network_parameters
from mvcca.cli.reading import reading_words
from mvcca.comparison.data import text_views
from mvcca.comparison.progress import epochs_reported
from mvcca.comparison.registry import METHODS, Method
from mvcca.comparison.texts import text_step
from mvcca.compose import PerView
from mvcca.machine.printable import printable
from mvcca.model_selection.tuning import tunable
from mvcca.persistence import describe, resumable, save
from mvcca.statistics.passes import workers
from mvcca.views import Labels, Views
from mvcca.views.coding import coding_in_words, coding_of
from mvcca.views.files import file_stamp


def run(options: Namespace) -> None:
    """Run the command."""
    method = METHODS[options.method]
    method.takes()  # torch may be missing
    chosen = _parameters(method, options)
    files, label_files = files_of_views(options), files_of_labels(options)
    of_labels = [label_files] if isinstance(label_files, str) else [*(label_files or {}).values()]
    output = checked_output(options.output, [*files.values(), *of_labels])
    missing = chosen.get("missing", options.missing)
    confounds = chosen.get("confounds")
    texts = [confounds] if confounds else []
    views, labels = read_inputs(options, files, holes=missing != "error", confounds=texts)
    mended: list[str] = []
    if missing in MENDS:
        views, kept, mended = without_holes(views, missing, files)
        labels = None if labels is None else labels[kept]
    _check_labels(method, labels, options.cv_goal)
    model, step = _built(method, chosen, views, options)
    _tune(model, method, chosen, views, labels, options)
    config: dict[str, Any] = {"device": options.device}
    if method.is_deep:  # whose progress is logged per epoch
        config["progress"] = False
    parameters = model.get_params(deep=False).items()
    arguments = {
        "--method": options.method,
        "--min-count": options.min_count,
        "--text-components": options.text_components,
        "--param": {name: repr(value) for name, value in parameters},
        "--block-rows": options.block_rows,
        "reading": reading_words(options),
        "--complete": options.complete,
        "--missing": missing,
        **{f"--view {name}": file_stamp(files[name], block) for name, block in views.items()},
        "--labels": list(map(file_stamp, of_labels)),
    }
    with (
        workers(options.workers, options.scheduler),
        configured(options, **config),
        resumable(output, arguments, resume=options.resume, flag="--resume"),
    ):
        with epochs_reported(model, Progress().log) if method.is_deep else nullcontext():
            rows = views if step is None else step.fit_transform(views)
            model.fit(rows, labels)
        save(model if step is None else make_pipeline(step, model), output)
    found = describe(output)
    facts = {**found, "missing": mended} if mended else found
    lines = [str(found), *mended]
    if confounds in views.names:
        with warnings.catch_warnings(action="ignore"):  # of ids and families, as the fit warned
            rows = views[confounds]
            coding = coding_of(rows) or dict.fromkeys(getattr(rows, "columns", None) or ())
            columns = coding_in_words(rows, coding)
        facts = {**facts, "confounds": list(columns)}
        lines.append(f"Confounds ({confounds}): {'; '.join(columns)}.")
    show(options, "\n".join(lines), facts)
    if not (options.json or options.quiet):
        print(printable(f"\nNext: {_search_command(options, files, confounds, output)}"))


def _search_command(
    options: Namespace, files: dict[str, str], confounds: str | None, output: Path
) -> str:
    """The search of the first view for the rows of the second, each beside its confounds."""
    beside = [f"{name}={file}" for name, file in files.items() if name == confounds]
    item, query, *_ = [f"{name}={file}" for name, file in files.items() if name != confounds]
    words = ["mvcca", "search", str(output)]
    for flag, given in (("--gallery", [item, *beside]), ("--query", [query, *beside])):
        words += [word for one in given for word in (flag, one)]
    return shlex.join([*words, *reading_words(options)])


def _parameters(method: Method, options: Namespace) -> dict[str, Any]:
    """The user's parameters, and a fixed seed so that a resumed fit gives the same model."""
    chosen = by_name(options.params, "--param")
    if "cv_goal" in chosen:
        raise UsageError("--param cv_goal: use --goal")
    for name in chosen:
        if name not in method.takes():
            known = ", ".join(sorted(method.takes()))
            raise UsageError(f"--param {name}: {method.name} has the parameters {known}")
    if options.missing not in ("error", *MENDS):
        if "missing" not in method.takes():
            raise UsageError(
                f"--missing {options.missing}: {method.name} learns from complete rows; give "
                f"{' or '.join(MENDS)}, or --method cca or mvcca"
            )
        chosen.setdefault("missing", options.missing)
    of_networks = network_parameters(options)
    for name in of_networks:
        if name not in method.takes():
            raise UsageError(f"{NETWORK_FLAGS[name]} is not a parameter of {method.name}")
        if name in chosen:
            flag = NETWORK_FLAGS[name]
            raise UsageError(f"{flag} and --param {name} are the same; give only one of them")
    if method.is_deep and (options.workers or options.scheduler):
        raise UsageError(
            f"--workers and --scheduler are not available for {method.name}, which trains networks "
            "in one process"
        )
    return {"random_state": 0, **chosen, **of_networks}


def _built(
    method: Method, chosen: dict[str, Any], views: Views, options: Namespace
) -> tuple[Any, PerView | None]:
    """The estimator, and the step before it that turns texts into numbers, if there are any."""
    names = [name for name in text_views(views) if name != chosen.get("confounds")]
    given = {
        name: value
        for name in ("min_count", "text_components")
        if (value := getattr(options, name)) is not None
    }
    if not names:
        for name in given:
            flag = "--" + name.replace("_", "-")
            raise UsageError(f"{flag} is for views of texts, in .txt files; there are none")
        return method.build(chosen), None
    words: Any = ()
    if method.reads_words:
        tokens = chosen.setdefault("tokens", names)  # a user may choose one
        words = [tokens] if isinstance(tokens, str) else tokens
    step = text_step(views, words, names, **given)
    return method.build(chosen), step


def _tune(
    model: Any,
    method: Method,
    given: Collection[str],
    views: Views,
    labels: Labels | None,
    options: Namespace,
) -> None:
    """Let folds choose the parameters that are not given, where the method can do so."""
    searched = tunable(model, given) if options.tune else None
    if searched is None:
        if options.cv_goal is not None:
            raise UsageError(
                f"--goal is what settings are chosen for; {method.name} chooses none"
                + (
                    f" beside {', '.join(n for n in given if n != 'random_state')}"
                    if tunable(model)
                    else ""
                )
            )
        return
    are_sets = labels is not None and labels.are_sets
    goal = options.cv_goal or method.goal(are_sets)
    if goal == "class" and not are_sets:
        raise UsageError(
            "--goal class needs classes or label sets: real vectors do not say which "
            "items are right; use --goal object, or give parameters and --no-tune"
        )
    if goal != "class" and (views.seen.sum(axis=1) < 2).all():
        raise UsageError(
            f"no object is seen in two views, so that settings cannot be chosen for {goal}s: "
            "use --goal class with classes or label sets, or give parameters and --no-tune"
        )
    model.set_params(**searched, cv_goal=goal)


def _check_labels(method: Method, labels: Labels | None, goal: str | None) -> None:
    if goal == "class" and labels is None:
        raise UsageError("--goal class needs --labels")
    if method.learns_from == "pairs" and labels is not None and goal != "class":
        raise UsageError(
            f"--method {method.name} learns from pairs only; omit --labels, or tune it for "
            "retrieval of items of the same class by --goal class"
        )
    if method.learns_from != "pairs" and labels is None:
        raise UsageError(f"--method {method.name} learns from labels; give --labels")
