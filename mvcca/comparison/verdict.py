"""What a comparison found: a sentence for each goal, and one table of all methods."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from textwrap import fill
from typing import NamedTuple

import numpy as np

from mvcca.comparison.candidates import DEFAULTS
from mvcca.comparison.measurements import Measurements
from mvcca.comparison.wording import listed, pretty, signed, with_error, written
from mvcca.machine.printable import in_one_line
from mvcca.machine.tables import Cell, Line, Table
from mvcca.model_selection import Choice
from mvcca.model_selection.goals import Goal
from mvcca.retrieval.measure import Measure

CAPTION = "How well methods find items of held-out objects"
_MOST_LINES = 10  # of methods in text
_MOST_REASONS = 3
_CHOOSES = {"object": "MRR", "class": "mean average precision"}
_TYPICAL_ERROR = {"object": ".014 (R@1)", "class": ".05 (mAP@50)"}


class Answer(NamedTuple):
    """The best method for one goal."""

    what: str  # description of the right items
    method: str
    value: str  # how well it finds them, and in which gallery
    chance: str  # the same of random scores
    others: str  # the next method; empty without others

    def __str__(self) -> str:
        others = f"; {self.others}" if self.others else ""
        what = self.what.removeprefix("the ").capitalize()
        return f"{what}: {self.method} {self.value} (chance {self.chance}){others}."


def answers(result: Measurements) -> list[Answer]:
    """The best method for each goal; none if no method could be fitted."""
    return [_answer(result, goal) for goal in result.goals if result.best_for(goal)]


def sentences(result: Measurements) -> list[str]:
    """The best method for each goal, and the next one."""
    return list(map(str, answers(result))) or ["No method could be fitted."]


def _answer(result: Measurements, goal: Goal) -> Answer:
    best, *others = result.ranked_for(goal)
    text = _figure(result, best, goal)
    others_text = ""
    if others:
        rival = max(others, key=lambda name: result.standing(name, goal).value)
        doubt = "" if result.is_worse(rival, goal) else ", which may be as good"
        by = "by MRR " * (goal == "object" and rival in _finds_more(result))
        value = _number(result, goal, _value(result, rival, goal))
        others_text = f"next {by}{rival} {value}{doubt}"
    chance = _number(result, goal, result.chance_of_goals[goal])
    what = in_one_line(result.right_items(goal))
    return Answer(what, in_one_line(best), in_one_line(text), chance, in_one_line(others_text))


def _finds_more(result: Measurements) -> list[str]:
    """Methods that find more same objects first than the best one, which MRR decides."""
    if "object" not in result.goals or result.by_measure:
        return []
    best, *others = result.ranked_for("object")
    value = _value(result, best, "object")
    return [name for name in others if _value(result, name, "object") > value]


def _figure(result: Measurements, method: str, goal: Goal) -> str:
    """Value of a method in the gallery of the user, in words."""
    value = _value(result, method, goal)
    number = _number(result, goal, value)
    size = result.standing(method, goal).told_of(result.gallery_size)
    if result.by_measure:
        return f"has {pretty(result.measures[0])} {number} among {size:,} held-out items"
    if goal == "class":
        return f"has mAP@50 {number} among {result.gallery_size:,} items"
    return f"finds it first in {number} of searches among {size:,} items"


def _value(result: Measurements, method: str, goal: Goal) -> float:
    own = result.standing(method, goal)
    if own.by_measure:
        return Measure.parse(result.measures[0]).sign * own.value
    if goal == "class":
        return own.value
    recall = own.at(result.gallery_size)[0]
    return own.shown() if np.isnan(recall) else recall


def _number(result: Measurements, goal: Goal, value: float) -> str:
    if result.by_measure:
        return written(result.measures[0], value)
    if goal == "object":
        return f"{100 * value:.2g} %" if 0 < value < 0.995 else f"{100 * value:.0f} %"
    return signed(f"{value:.2f}")


# ---- table --------------------------------------------------------------------------------------


def table(result: Measurements) -> Table:
    """All methods: what is measured in the galleries of the folds, and at the user's size.

    With the measures that the user gave, of all held-out rows of a fold.
    """
    names = _in_order(result)
    columns = [column for goal in result.goals for column in _columns(result, goal, names)]
    columns += _of_user(result, names)
    n_folds = {name: len(result.runs[name].folds) for name in names}
    if len(set(n_folds.values())) > 1:
        columns.append(("folds", {name: Cell(str(n)) for name, n in n_folds.items()}))
    lines = [
        Line(
            in_one_line(name),
            [cells.get(name, Cell("-")) for _, cells in columns],
            kind="best" if name in {result.best_for(goal) for goal in result.goals} else "",
        )
        for name in names
    ]
    lines += [
        Line(in_one_line(name), reason=in_one_line(reason))
        for name, reason in result.failures.items()
    ]
    heads = [in_one_line(head) for head, _ in columns]
    values = [[name, *_plain(result, name)] for name in names]
    names_of_values = ["method", *(column for goal in result.goals for column in _names(goal))]
    return Table(
        CAPTION, ["method", *heads], lines, ("method",), notes(result), names_of_values, values
    )


def _in_order(result: Measurements) -> list[str]:
    """Methods by the first goal, then those that are measured for another one only."""
    found = [name for goal in result.goals for name in result.ranked_for(goal)]
    return [*dict.fromkeys(found)]


def _columns(
    result: Measurements, goal: Goal, names: Sequence[str]
) -> list[tuple[str, dict[str, Cell]]]:
    ranked = [name for name in names if goal in result.runs[name].trials]
    if not ranked:
        return []
    best, own = result.best_for(goal), {n: result.standing(n, goal) for n in ranked}
    mark = {name: "<" if name == best else " " for name in ranked}
    size = own[str(best)].gallery
    if result.by_measure:
        name = result.measures[0]
        sign = Measure.parse(name).sign
        cells = {
            n: Cell(with_error(name, sign * s.value, s.reach), mark[n]) for n, s in own.items()
        }
        return [(f"{pretty(name)} of {size:,}", cells)]
    n_items = size if goal == "object" else result.gallery_size
    head = "R@1" if goal == "object" else "mAP@50"
    cells = {n: Cell(with_error("r@1", s.shown(), s.reach), mark[n]) for n, s in own.items()}
    found = [(f"{head} of {n_items:,}", cells)]
    if goal == "object" and size != result.gallery_size:
        recalls = {n: s.at(result.gallery_size)[0] for n, s in own.items()}
        if not any(map(np.isnan, recalls.values())):
            cells = {n: Cell(signed(f"{r:.3f}"), mark[n]) for n, r in recalls.items()}
            found[0] = (found[0][0], {n: replace(c, mark="") for n, c in found[0][1].items()})
            found.append((f"R@1 of {result.gallery_size:,}", cells))
    return found


def _of_user(result: Measurements, names: Sequence[str]) -> list[tuple[str, dict[str, Cell]]]:
    """Columns of the measures that the user asks for."""
    if result.settings.are_default:
        return []
    size = len(result.folds[0].test)
    first = result.measures[1:] if result.by_measure else result.measures
    found = []
    for m in first:
        sign = Measure.parse(m).sign
        own = {name: result.standing(name, m) for name in names}
        cells = {n: Cell(with_error(m, sign * s.value, s.reach)) for n, s in own.items()}
        found.append((f"{pretty(m)}, fold of {size:,}", cells))
    return found


def _names(goal: Goal) -> list[str]:
    if goal == "class":
        return ["mAP@50"]
    return ["R@1 of the folds", "R@1", "MRR"]


def _plain(result: Measurements, method: str) -> list[float]:
    """Values of a method, in the order of `_names`; NaN if it has none for a goal."""
    found: list[float] = []
    for goal in result.goals:
        if goal not in result.runs[method].trials:
            found += [np.nan] * len(_names(goal))
        elif goal == "class" or result.by_measure:
            found += [result.standing(method, goal).value] * len(_names(goal))
        else:
            own = result.standing(method, goal)
            found += [own.shown(), *own.at(result.gallery_size)]
    return found


def notes(result: Measurements) -> list[str]:
    """What figures were measured on, and what marks and errors mean."""
    if not result.successes:
        return []
    sizes = sorted({len(fold.test) for fold in result.folds})
    of = " or ".join(f"{size:,}" for size in (sizes if len(sizes) < 3 else [sizes[0], sizes[-1]]))
    split = (
        f"{len(result.folds)} folds of {of}"
        if len(result.folds) > 1
        else f"One split, {of} held out"
    )
    goals = result.goals
    chosen = "the settings of each goal" if len(goals) > 1 else "settings"
    own = f"; {chosen} are chosen on them, too" if _is_tuned(result) else ""
    best = "< best"
    if _finds_more(result):
        best += f", of {result.right_items('object')} by MRR in the folds"
    lines = [f"{split}{own}. ±: values on new rows lie within it 9 times in 10. {best}"]
    if result.by_measure:
        return lines
    size = result.gallery_size
    for goal in goals:
        first = result.standing(name, goal) if (name := result.best_for(goal)) else None
        if first and first.gallery != size and (goal == "class" or first.told_of(size) == size):
            how = "extrapolated" if first.gallery < size else "rarefied"
            of = f"Figures for {size:,} are {how} from galleries of {first.gallery:,}"
            lines.append(f"{of}: typical error {_TYPICAL_ERROR[goal]}")
            break
    if result.data.groups is not None:
        lines.append(result.data.groups.describe(result.folds))
    if result.dropped:
        lines.append(f"Cannot be best, measured on two folds: {listed(result.dropped)}")
    return list(map(in_one_line, lines))


def warnings_of(result: Measurements) -> list[str]:
    """Warnings of methods with a single setting; methods that give the same one are together."""
    methods: dict[str, list[str]] = {}
    for name in result.successes:
        for text in result.runs[name].warnings:
            methods.setdefault(text, []).append(name)
    return [in_one_line(f"{listed(names)}: {text}") for text, names in methods.items()]


def _is_tuned(result: Measurements) -> bool:
    return any(candidate.is_tuned for candidate in result.candidates)


# ---- all that is known --------------------------------------------------------------------------


def details(result: Measurements) -> Table:
    """Chosen settings, rankings and costs: a line per method, or per goal if settings differ."""
    lines = []
    for candidate in result.candidates:
        if (name := candidate.name) in result.failures:
            continue
        run, by_settings = result.runs[name], dict[tuple[str, str], list[str]]()
        for goal, trials in run.trials.items():
            settings = _settings_in_words(result.choice(name, goal))
            key = settings, str(trials.best.ranking)
            by_settings.setdefault(key, []).append(result.right_items(goal))
        peaks = [own for own in run.peak_bytes.values() if own is not None]
        costs = [
            f"{np.mean(list(run.seconds.values())):.2f}",
            f"{max(peaks) / 1e6:.0f}" if peaks else "",
        ]
        for (settings, ranking), goals in by_settings.items():
            texts = [listed(goals), settings, ranking, candidate.learns_from, *costs]
            lines.append(Line(in_one_line(name), list(map(Cell, map(in_one_line, texts)))))
            costs = ["", ""]
    columns = ["method", "for", "settings", "ranked by", "learns from", "s a fold", "MB"]
    edges = ["^ at an edge of the searched values"] * any("^" in str(line.cells) for line in lines)
    notes = ["s a fold: fits of all settings, and ranking; MB: memory that they took", *edges]
    return Table("Settings and costs", columns, lines, columns[:5], notes)


def _settings_in_words(choice: Choice | None) -> str:
    """Settings that were chosen, marked if at an edge of what was searched."""
    if choice is None:
        return "as given"
    return ", ".join(
        f"{_written(name, value)}{'^' if name in choice.at_edge else ''}"
        for name, value in choice.parameters.items()
    )


def _written(name: str, value: object) -> str:
    if name == "n_components":
        return f"{'all' if value is None else value} components"
    if isinstance(value, dict):  # of scales
        return f"{name} of " + (", ".join(view for view, own in value.items() if own) or "no view")
    return f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"


def by_direction(result: Measurements) -> Iterator[Table]:
    """A table per measure: a line per direction and a column per method."""
    found: dict[str, dict[str, dict[str, list[float]]]] = {}
    for record in result.records():
        if record["direction"]:
            of_measure = found.setdefault(record["measure"], {})
            of_direction = of_measure.setdefault(record["direction"], {})
            of_direction.setdefault(record["method"], []).append(record["value"])
    for measure, of_directions in found.items():
        methods = list(dict.fromkeys(name for own in of_directions.values() for name in own))
        lines = [
            Line(
                in_one_line(direction),
                [
                    Cell(written(measure, float(np.mean(own[n]))) if n in own else "-")
                    for n in methods
                ],
            )
            for direction, own in of_directions.items()
        ]
        caption = f"{pretty(measure)} by direction, {measured_on(result)}"
        yield Table(caption, ["query → searched", *map(in_one_line, methods)], lines)


def measured_on(result: Measurements) -> str:
    """Number of folds and of held-out objects."""
    n_held_out = len(result.folds[0].test)
    if result.is_one_split:
        return f"{n_held_out:,} held-out objects"
    return f"{len(result.folds)} folds, {n_held_out:,} held-out objects in the first"


def title_of(result: Measurements) -> str:
    """The title of the data, by default the names of the views."""
    return in_one_line(result.presentation.title or " and ".join(result.data.views.names))


def about(result: Measurements) -> list[str]:
    """The data, how the objects were split, and settings common to all methods."""
    folds, settings = result.folds, result.settings
    sizes = f"{len(folds[0].train):,} training and {len(folds[0].test):,} held-out objects"
    split = (
        f"one split, {sizes}" if len(folds) == 1 else f"{len(folds)} folds, {sizes} in the first"
    )
    lines = [*result.data.describe(), f"{split}; seed {settings.random_state}"]
    tuned = [one.name for one in result.candidates if one.is_tuned]
    if tuned:
        by = "all methods" if len(tuned) == len(result.candidates) else listed(tuned)
        measures = listed([_CHOOSES[goal] for goal in result.goals])
        lines.append(f"settings of {by} chosen on the same folds: largest {measures}")
    fixed = any(one.method is not None and not one.is_tuned for one in result.candidates)
    params = {**(DEFAULTS if fixed else {}), **settings.params} if result.has_named else {}
    given = [
        f"{value} components" if name == "n_components" else f"{name} {value}"
        for name, value in params.items()
        if name not in settings.search
    ]
    if given:
        lines.append(f"settings: {', '.join(given)}")
    if settings.search:
        tried = ", ".join(f"{k} from {', '.join(map(str, v))}" for k, v in settings.search.items())
        lines.append(f"chosen on the same folds: {tried}")
    return list(map(in_one_line, lines))


def definitions(result: Measurements) -> list[str]:
    """What the measures and the tests are."""
    chance = [f"{_number(result, g, own)} ({g})" for g, own in result.chance_of_goals.items()]
    test = (
        "a paired t-test over held-out objects"
        if result.is_one_split
        else ("the corrected resampled t-test over folds (Nadeau and Bengio)")
    )
    measures = result.chance[0].notes if result.names_measures else ()
    return [
        f"may be as good: {test} finds no difference at the 5 % level",
        f"chance: exact expectation if every query ranks all items at random; {listed(chance)}",
        *(in_one_line(_meaning(note)) for note in measures),
    ]


def _meaning(note: str) -> str:
    """Definition of measures under their pretty names, without the similarity."""
    names, _, meaning = note.replace("; random order", "").partition(": ")
    return f"{', '.join(map(pretty, names.split(', ')))}: {meaning}"


def verbose_text(result: Measurements, directions: bool = False, *, bold: bool = False) -> str:
    """All that is known; with `directions`, also every direction of every method."""
    width = shutil.get_terminal_size().columns
    wrapped = [fill(text, width, subsequent_indent="  ") for text in about(result)]
    parts = ["\n".join([as_text(result, bold=bold)]), "\n".join(wrapped)]
    tables = [details(result), *(by_direction(result) if directions else ())]
    parts += [f"{own.caption}\n{own.as_text(width)}" for own in tables if own.lines]
    parts.append("\n".join(fill(t, width, subsequent_indent="  ") for t in definitions(result)))
    return "\n\n".join(parts)


def as_text(result: Measurements, width: int | None = None, *, bold: bool = False) -> str:
    """The sentences and the table, in few lines."""
    width = max(40, width or shutil.get_terminal_size().columns)
    whole = table(result)
    measured = [line for line in whole.lines if not line.reason]
    failed = [line for line in whole.lines if line.reason]
    shown = replace(whole, lines=measured[:_MOST_LINES], notes=())
    parts = [fill(text, width) for text in sentences(result)]
    if measured:
        text = shown.as_text(width, bold=bold)
        parts += ["", "\n".join(line.rstrip() for line in text.splitlines())]
    if len(measured) > _MOST_LINES:
        parts.append(f"{len(measured) - _MOST_LINES} more methods: see the report")
    parts += [fill(text, width) for text in whole.notes]
    parts += [fill(f"{line.name} skipped: {line.reason}", width) for line in failed[:_MOST_REASONS]]
    said = warnings_of(result)
    parts += [fill(text, width) for text in said[:_MOST_REASONS]]
    if len(said) > _MOST_REASONS:
        parts.append(f"{len(said) - _MOST_REASONS} more warnings: see the report")
    if len(failed) > _MOST_REASONS:
        parts.append(f"{len(failed) - _MOST_REASONS} more skipped: see failures")
    if not result.is_complete:
        parts.append("Interrupted: some folds or methods are missing.")
    return "\n".join(parts)
