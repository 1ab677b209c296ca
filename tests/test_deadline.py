"""A deadline ends work at the next tick, and a comparison says what it left out, and why."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

import mvcca
from mvcca import CCA
from mvcca.machine.deadline import (
    NO_DEADLINE,
    Deadline,
    OutOfTime,
    in_words,
    seconds_of,
    tick,
)
from mvcca.machine.progress import counting, steps
from mvcca.model_selection.tuning import tunable


@dataclass(frozen=True)
class Clock:
    """A clock in a file, which only estimators advance; several processes may read it."""

    file: str

    def __call__(self):
        return float(Path(self.file).read_text())

    def advance(self, seconds):
        with Path(self.file).open("r+") as file:
            found = float(file.read())
            file.seek(0)
            file.write(f"{found + seconds:012.3f}")


@pytest.fixture
def clock(tmp_path, monkeypatch):
    """The clock of all deadlines of comparisons."""
    found = Clock(str(tmp_path / "clock"))
    Path(found.file).write_text("00000000.000")

    def after(budget):
        return NO_DEADLINE if budget is None else Deadline(found() + seconds_of(budget), found)

    monkeypatch.setattr(Deadline, "after", staticmethod(after))
    return found


class Timed(CCA):
    """A CCA whose fit takes some ticks of one second each."""

    def __init__(self, n_components=1, *, clock=None, ticks=1, ticking=True):
        super().__init__(n_components, reg=0.1)
        self.clock, self.ticks, self.ticking = clock, ticks, ticking

    def fit(self, X, y=None):
        if self.clock is None or len(X) <= 100:  # a warm-up takes no time
            return super().fit(X, y)
        for _ in steps(self.ticks, "ticks") if self.ticking else range(self.ticks):
            self.clock.advance(1)
        return super().fit(X, y)


def planted(n=150):
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((n, 3))
    return {
        name: Z @ rng.standard_normal((3, p)) + rng.standard_normal((n, p))
        for name, p in (("a", 5), ("b", 4))
    }


def compared(methods, budget, **options):
    options = {"cv": 4, "groups": np.arange(150)} | options
    return mvcca.compare(methods, planted(), budget=budget, **options)


# ---- ticks --------------------------------------------------------------------------------------


def test_a_deadline_tells_what_fits():
    now = [10.0]
    deadline = Deadline(15.0, lambda: now[0])
    assert (deadline.left(), deadline.allows(5), deadline.allows(5.1)) == (5, True, False)
    deadline.check()
    now[0] = 15.1
    with pytest.raises(OutOfTime):
        deadline.check()
    assert NO_DEADLINE.allows(1e300)


def test_a_loop_ends_at_the_first_tick_after_the_deadline():
    now, seen = [0.0], []

    def loop():
        for number in steps(9, "loop"):
            seen.append(number)
            now[0] += 1

    with Deadline(2.5, lambda: now[0]).enforced(), pytest.raises(OutOfTime):
        loop()
    assert seen == [0, 1, 2]
    with counting(1, "after") as count:  # no deadline any more
        count()


def test_a_loop_does_not_begin_after_the_deadline():
    with Deadline(0.0, lambda: 1.0).enforced(), pytest.raises(OutOfTime), counting(3, "loop"):
        raise AssertionError("begun")


def test_an_enclosing_deadline_holds_again_after_the_inner_one():
    late, early = Deadline(5.0, lambda: 3.0), Deadline(2.0, lambda: 3.0)
    with early.enforced():
        with late.enforced():
            tick()
        with pytest.raises(OutOfTime):
            tick()


def test_a_search_that_skips_failures_is_stopped(clock):
    clock.advance(1)
    search = GridSearchCV(Timed(clock=clock), {"ticks": [1, 2]}, error_score=np.nan, cv=2)
    with Deadline(0.0, clock).enforced(), pytest.raises(OutOfTime):
        search.fit(mvcca.Views(planted(300)))


@pytest.mark.parametrize("name", ["cca", "mvcca", "gcca", "pls", "mlcca", "jrl", "ncca", "cmolrs"])
def test_a_tuned_fit_has_ticks(name):
    y, views = np.arange(150) % 3, planted()
    model = mvcca.methods()[name].build({"random_state": 0})
    model.set_params(**tunable(model))
    with Deadline(0.0, lambda: 1.0).enforced(), pytest.raises(OutOfTime):
        model.fit(views, y)


def test_epochs_are_ticks():
    pytest.importorskip("torch")
    from mvcca.deep import DCCA
    from mvcca.deep.callbacks import Callback

    now = [0.0]

    class Second(Callback):
        def on_epoch_end(self, trainer):
            now[0] += 1
            last.append(trainer.epoch)

    last = []
    model = DCCA(2, max_epochs=9, callbacks=[Second()], random_state=0, start="random")
    with Deadline(2.5, lambda: now[0]).enforced(), pytest.raises(OutOfTime):
        model.fit(planted())
    assert last == [1, 2, 3]


# ---- comparisons --------------------------------------------------------------------------------


def test_without_a_limit_everything_runs(clock):
    found = compared({"slow": Timed(clock=clock, ticks=50), "fast": Timed(clock=clock)}, None)
    assert found.successes == ["slow", "fast"]
    assert not found.failures
    limited = compared({"slow": Timed(ticks=50), "fast": Timed()}, "10min")
    columns = ["method", "fold", "direction", "measure"]
    frames = [own.to_frame().set_index(columns).value for own in (found, limited)]
    tables = [frame.drop(COSTS, level=3) for frame in frames]
    assert tables[0].equals(tables[1])


COSTS = ["seconds", "peak bytes"]


def folds_of(found):
    """Number of folds of each method that was measured."""
    return {name: len(found.runs[name].folds) for name in found.successes}


def test_methods_with_two_folds_in_time_are_in_the_table_with_their_number_of_folds(clock):
    methods = {"fast": Timed(clock=clock), "slow": Timed(clock=clock, ticks=10)}
    found = compared(methods, 22.5, measures="mrr")
    assert folds_of(found) == {"fast": 3, "slow": 2}
    assert clock() == 23  # no fit begins after the limit
    assert re.search("^fast .* 3$", str(found), re.M)
    assert re.search("^slow .* 2$", str(found), re.M)
    assert found.is_complete
    whole = compared(methods, "99s", measures="mrr")
    assert folds_of(whole) == {"fast": 4, "slow": 4}
    values = [own.fold_values("fast", "mrr") for own in (found, whole)]
    np.testing.assert_array_equal(values[0], values[1][:3])


def test_the_fit_at_hand_is_finished_unless_it_takes_the_budget_again(clock):
    methods = {"fast": Timed(clock=clock), "slow": Timed(clock=clock, ticks=6)}
    assert folds_of(compared(methods, 12.5)) == {"fast": 2, "slow": 2}
    assert clock() == 14
    methods["slow"] = Timed(clock=clock, ticks=100)
    with pytest.raises(TimeoutError, match=r"budget=12\.5\. Pass a larger one, or budget=None"):
        compared(methods, 12.5)
    assert clock() == 14 + 26


def test_methods_with_one_fold_or_none_are_left_out_and_named(clock):
    methods = {name: Timed(clock=clock) for name in "abcd"}
    found = compared(methods, 5.7)
    assert folds_of(found) == {"a": 2, "b": 2}
    for name in "cd":
        assert found.failures[name] == (
            "left out: no time of budget=5.7 was left for it, and it was measured on one fold "
            "only. Pass a larger budget, or budget=None, to include it"
        )
        assert re.search(f"^{name} skipped: left out: no time", str(found), re.M)
        assert name not in found.successes


def test_methods_that_are_added_have_the_budget_again(clock):
    found = compared({"first": Timed(clock=clock)}, 6)
    clock.advance(100)
    more = found.add({"second": Timed(clock=clock), "slow": Timed(clock=clock, ticks=20)})
    assert more.successes == ["first"]
    assert more.failures.keys() == {"second", "slow"}


def test_a_method_that_raises_is_a_failure_and_takes_no_time_from_others(clock):
    methods = {"fails": Timed(-1), "fast": Timed(clock=clock)}
    found = compared(methods, 9)
    assert found.successes == ["fast"]
    assert found.failures["fails"].startswith("The 'n_components' parameter of Timed must be")


def test_one_split_needs_no_time_for_other_folds(clock):
    found = compared({"slow": Timed(clock=clock, ticks=5)}, 5.5, cv=0.3)
    assert found.successes == ["slow"]


@pytest.mark.slow
def test_a_limit_that_is_not_reached_changes_nothing():
    names, options = ["mlcca", "cca", "pls"], {"y": np.arange(150) % 3}
    free, limited = (compared(names, budget, **options) for budget in (None, "1h"))
    assert str(free) == str(limited)
    for name in free.methods:
        for goal in free.goals:
            assert free.choice(name, goal).parameters == limited.choice(name, goal).parameters


@pytest.mark.parametrize("n_jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_every_process_keeps_the_deadline(clock, n_jobs):
    before = compared({"before": Timed()}, 40)
    endless = {name: Timed(clock=clock, ticks=10**6) for name in ("endless", "too")}
    found = before.add(endless, n_jobs=n_jobs)
    assert found.successes == ["before"]
    assert all(found.failures[name].startswith("left out: ") for name in endless)
    assert 80 < clock() <= 80 + n_jobs


def test_a_deep_method_is_stopped_at_an_epoch(clock):
    pytest.importorskip("torch")
    from mvcca.deep import DCCA

    deep = DCCA(2, max_epochs=10**6, callbacks=[epoch_of_a_second(clock)], start="random")
    methods = {"DCCA": deep, "fast": Timed(clock=clock)}
    found = compared({"before": Timed()}, 9).add(methods)
    assert found.successes == ["before"]
    assert found.failures["DCCA"].startswith("left out: no time of budget=9")
    assert clock() == 19


def epoch_of_a_second(clock):
    from mvcca.deep.callbacks import Callback

    class Second(Callback):
        def on_epoch_end(self, trainer):
            clock.advance(1)

    return Second()


# ---- budgets as text ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("30s", 30),
        ("10min", 600),
        ("2h", 7200),
        (" 1.5 h ", 5400),
        (".5s", 0.5),
        (90, 90),
        (1.5, 1.5),
    ],
)
def test_budgets_are_seconds_or_have_units(text, expected):
    assert seconds_of(text) == expected


@pytest.mark.parametrize("text", ["", "10", "10m", "-3s", "0s", "1h30min", 0, -1, float("nan")])
def test_other_budgets_are_refused(text):
    with pytest.raises(ValueError, match='a time such as "30s", "10min" or "2h"'):
        seconds_of(text)
    with pytest.raises(ValueError, match='a time such as "30s", "10min" or "2h"'):
        mvcca.compare("cca", planted(), budget=text)


@pytest.mark.parametrize("value", [True, [1]])
def test_budgets_of_other_types_are_refused(value):
    with pytest.raises(TypeError, match="Expected budget to be seconds"):
        mvcca.compare("cca", planted(), budget=value)


def test_times_are_written_in_words():
    found = [in_words(seconds) for seconds in (0.1, 89, 91, 5399, 5401)]
    assert found == ["1 s", "89 s", "2 min", "90 min", "1.5 h"]


def test_folds_of_matrices_that_do_not_fit_in_memory_are_refused(monkeypatch):
    monkeypatch.setattr("mvcca.model_selection.fold_statistics.available_bytes", lambda: 100.0)
    with pytest.raises(MemoryError, match=r'parts of the rows need about 0\.0 GB.* place of "cv"'):
        CCA(reg="cv").fit(*planted().values())
    found = compared("cca", None)
    assert found.failures["CCA"].startswith("MemoryError: Covariances of 1 more parts")
