"""A deadline ends work at the next tick, and a comparison says what it left out, and why."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

import mvcca
from mvcca import CCA
from mvcca.comparison.candidates import cheapest_first
from mvcca.machine.deadline import (
    NO_DEADLINE,
    Deadline,
    OutOfTime,
    budget_of,
    in_words,
    seconds_of,
    tick,
)
from mvcca.machine.progress import counting, steps


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

    def __init__(self, n_components=1, *, clock=None, ticks=1, ticking=True, waits=""):
        super().__init__(n_components, reg=0.1)
        self.clock, self.ticks, self.ticking, self.waits = clock, ticks, ticking, waits

    def fit(self, X, y=None):
        if self.clock is None or len(X) <= 100:  # a warm-up takes no time
            return super().fit(X, y)
        for _ in steps(self.ticks, "ticks") if self.ticking else range(self.ticks):
            self.clock.advance(1)
        if self.waits:  # for the fits of another process
            for _ in steps(4000, "waiting"):
                if len(Path(self.waits).read_text()) >= 4:
                    self.clock.advance(1000)
                time.sleep(0.01)
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
    model.set_params(**mvcca.model_selection.tunable(model))
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


COSTS = ["fit seconds", "query seconds", "peak bytes"]


def test_a_method_whose_other_folds_do_not_fit_is_named_with_a_budget_that_includes_it(clock):
    methods = {"fast": Timed(clock=clock), "slow": Timed(clock=clock, ticks=10)}
    found = compared(methods, 20, measures="mrr")
    assert found.successes == ["fast"]
    assert clock() == 4 + 10  # the first fold of slow
    reason = found.failures["slow"]
    assert reason == (
        "left out: the first of 4 folds took 10 s, and the others do not fit into budget=20. "
        "Pass budget='53s', or budget=None, to include it"
    )
    assert re.search("^slow +skipped: left out: the first of 4 folds", str(found), re.M)
    assert found.is_complete  # every method was tried
    assert compared(methods, "53s", measures="mrr").successes == ["fast", "slow"]


def test_a_limit_within_the_first_fold_stops_it_at_the_next_tick(clock):
    methods = {"fast": Timed(clock=clock), "slow": Timed(clock=clock, ticks=100)}
    found = compared(methods, 12.5)
    assert found.successes == ["fast"]
    assert clock() == 4 + 9
    assert found.failures["slow"] == (
        "left out: stopped after 9 s, when no time of budget=12.5 was left. Pass a larger budget, "
        "or budget=None, to include it"
    )


class Slowing(Timed):
    """Fits take long from the seventh second on."""

    def fit(self, X, y=None):
        self.ticks = 1 if self.clock() < 7 else 50
        return super().fit(X, y)


def test_a_limit_between_folds_leaves_out_the_whole_method(clock):
    methods = {"fast": Timed(clock=clock), "slowing": Slowing(clock=clock)}
    found = compared(methods, 20)
    assert found.successes == ["fast"]
    assert "stopped after" in found.failures["slowing"]
    assert not found.measured("slowing")
    assert clock() == 21  # one tick over


def test_methods_that_no_time_is_left_for_do_not_begin(clock):
    methods = {name: Timed(clock=clock) for name in "abcd"}
    found = compared(methods, 8.7)
    assert found.successes == ["a", "b"]
    assert "stopped after 1 s" in found.failures["c"]
    assert found.failures["d"].startswith("left out: no time of budget=8.7 was left for it. Pass")
    assert clock() == 9


def test_a_limit_for_nothing_is_an_error_with_the_shortest_budget_measured(clock):
    methods = {"short": Timed(clock=clock, ticks=2), "long": Timed(clock=clock, ticks=9)}
    with pytest.raises(TimeoutError) as error:
        compared(methods, 5)
    assert str(error.value) == (
        "No method could be measured within budget=5. As measured, short needs budget='10s'. Pass "
        "that, or budget=None, which sets no limit."
    )
    assert compared(methods, "10s").successes == ["short"]
    with pytest.raises(TimeoutError, match=r"within budget=1\. Pass a larger one, or budget=None"):
        compared({"long": Timed(clock=clock, ticks=9)}, 1)


def test_methods_that_are_added_have_the_budget_again(clock):
    found = compared({"first": Timed(clock=clock)}, 6)
    clock.advance(100)
    more = found.add({"second": Timed(clock=clock), "slow": Timed(clock=clock, ticks=4)})
    assert more.successes == ["first", "second"]
    assert "left out: stopped after 3 s" in more.failures["slow"]


def test_work_without_ticks_is_over_by_one_fit(clock):
    compiled = Timed(clock=clock, ticks=30, ticking=False)
    found = compared({"fast": Timed(clock=clock), "compiled": compiled}, 12)
    assert found.successes == ["fast"]
    assert clock() == 4 + 30
    assert "left out" in found.failures["compiled"]


def test_a_method_that_raises_is_a_failure_and_takes_no_time_from_others(clock):
    methods = {"fails": Timed(-1), "fast": Timed(clock=clock)}
    found = compared(methods, 9)
    assert found.successes == ["fast"]
    assert found.failures["fails"].startswith("The 'n_components' parameter of Timed must be")


def test_one_split_needs_no_time_for_other_folds(clock):
    found = compared({"slow": Timed(clock=clock, ticks=5)}, 5.5, cv=0.3)
    assert found.successes == ["slow"]


@pytest.mark.parametrize("cv", [4, 2])  # inner folds are those of the comparison, or others
def test_wherever_the_limit_falls_methods_are_searched_or_at_default_settings_or_left_out(
    monkeypatch, cv
):
    readings = []

    def clock():  # a second passes whenever it is read
        readings.append(None)
        return float(len(readings))

    def after(budget):
        return NO_DEADLINE if budget is None else Deadline(clock() + budget, clock)

    def values_of(found):
        mrr = found.to_frame().set_index("measure").loc["mrr"]
        return {name: tuple(own.value) for name, own in mrr.groupby("method")}

    monkeypatch.setattr(Deadline, "after", staticmethod(after))
    names, options = ["mlcca", "cca", "pls"], {"y": np.arange(150) % 3, "cv": cv}
    options |= {"measures": "mrr", "params": {"n_components": 2}}
    whole = compared(names, 1e6, **options)
    n_readings, searched = len(readings), values_of(whole)
    default = values_of(compared(names, None, tune=False, **options))
    seen = set()
    for share in (0.2, 0.4, 1.0, 2.0):
        readings.clear()
        budget = share * n_readings
        found = compared(names, budget, **options)
        untimely = {own.name for own in found.candidates if own.out_of_time}
        assert {*found.successes, *found.failures} == {*whole.methods}
        assert all("left out" in reason for reason in found.failures.values())
        for name, values in values_of(found).items():
            assert values == (default if name in untimely else searched)[name]
        said = re.search(r"at default settings, since .*: (.*)", found._repr_html_())
        shown = said[1].split("<")[0] if said else ""
        assert all((name in shown) == (name in untimely) for name in found.methods)
        assert len(readings) <= budget + 40
        for name in untimely & {*found.successes}:
            assert "cv" not in found.refit(name).get_params().values()
        seen |= {(name, name in untimely) for name in found.successes}
    assert seen >= {("MLCCA", True), ("CCA", True), *((name, False) for name in whole.methods)}


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_every_process_keeps_the_deadline(clock, n_jobs):
    before = compared({"before": Timed()}, 40)
    endless = {name: Timed(clock=clock, ticks=10**6) for name in ("endless", "too")}
    found = before.add(endless, n_jobs=n_jobs)
    assert found.successes == ["before"]
    reasons = found.failures["endless"], found.failures["too"]
    assert all(reason.startswith("left out: ") for reason in reasons)
    assert any("stopped after" in reason for reason in reasons)
    assert 40 < clock() <= 40 + n_jobs


class Noted(CCA):
    """A CCA that notes each of its fits in a file."""

    def __init__(self, n_components=1, *, file=""):
        super().__init__(n_components, reg=0.1)
        self.file = file

    def fit(self, X, y=None):
        with Path(self.file).open("a") as file:
            file.write("." if len(X) > 100 else "")
        return super().fit(X, y)


def test_with_several_processes_a_cheap_method_is_not_left_behind(clock, tmp_path):
    file = tmp_path / "fits"
    file.touch()
    waiting = {name: Timed(clock=clock, waits=str(file)) for name in ("waits", "too")}
    found = compared({"cheap": Noted(file=str(file))} | waiting, 500, n_jobs=2)
    assert found.successes == ["cheap"]
    assert found.failures.keys() == {"waits", "too"}


def test_a_deep_method_is_stopped_at_an_epoch(clock):
    pytest.importorskip("torch")
    from mvcca.deep import DCCA

    deep = DCCA(2, max_epochs=10**6, callbacks=[epoch_of_a_second(clock)], start="random")
    methods = {"DCCA": deep, "fast": Timed(clock=clock)}
    found = compared(methods, 9)
    assert found.successes == ["fast"]
    assert "left out: stopped after" in found.failures["DCCA"]


def epoch_of_a_second(clock):
    from mvcca.deep.callbacks import Callback

    class Second(Callback):
        def on_epoch_end(self, trainer):
            clock.advance(1)

    return Second()


def test_cheap_methods_run_first_and_networks_last():
    names = ["kcca", "cca", "jrl", "pls"]
    named = [candidate(mvcca.methods()[name].build({})) for name in names]
    foreign = candidate(GridSearchCV(CCA(), {"reg": [0.1]}))
    deep = candidate(Deep())
    tuned = candidate(mvcca.PLS(), is_tuned=True)
    found = cheapest_first([deep, tuned, candidate(object()), *named, foreign])
    kinds = [type(one.estimator).__name__ for one in found]
    assert kinds == ["PLS", "CCA", "GridSearchCV", "JRL", "KCCA", "object", "PLS", "Deep"]


class Deep:
    callbacks = ()


def candidate(estimator, **options):
    from mvcca.comparison.candidates import Candidate

    return Candidate("", estimator, "pairs", **options)


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


@pytest.mark.parametrize("seconds", [0.2, 1, 99.5, 100, 101, 5990, 6001, 1e5])
def test_a_budget_that_is_advised_suffices(seconds):
    assert seconds <= seconds_of(budget_of(seconds)) <= 1.1 * seconds + 1 or seconds == 101


def test_times_are_written_in_words():
    found = [in_words(seconds) for seconds in (0.1, 89, 91, 5399, 5401)]
    assert found == ["1 s", "89 s", "2 min", "90 min", "1.5 h"]


def test_folds_of_matrices_that_do_not_fit_in_memory_are_refused(monkeypatch):
    monkeypatch.setattr("mvcca.model_selection._fold_statistics.available_bytes", lambda: 1000.0)
    with pytest.raises(MemoryError, match=r'parts of the rows need about 0\.0 GB.* place of "cv"'):
        CCA(reg="cv").fit(*planted().values())
    found = compared("cca", None)
    assert found.failures["CCA"].startswith("MemoryError: Covariances of 3 more parts")
