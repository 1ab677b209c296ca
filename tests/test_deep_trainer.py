"""The trainer: what an epoch is, what ends a training, and what it survives."""

from __future__ import annotations

import copy
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from scipy.sparse import csr_array

torch = pytest.importorskip("torch")

from deep_estimators import Interrupt, blocks  # noqa: E402
from sklearn.exceptions import ConvergenceWarning  # noqa: E402
from torch import nn  # noqa: E402

from mvcca import Views, config_context  # noqa: E402
from mvcca.deep import DCCA, DSDCCA, L0CCA, EncoderCCA, SoftCCA  # noqa: E402
from mvcca.deep._training.rows import Batches  # noqa: E402
from mvcca.deep.callbacks import Callback, Refinement, ValidationScore  # noqa: E402
from mvcca.deep.encoders import Encoders, mlp  # noqa: E402
from mvcca.deep.layers import StochasticGates  # noqa: E402
from mvcca.deep.objectives import TraceNormLoss  # noqa: E402
from mvcca.deep.samplers import Sample, ShuffledBatches  # noqa: E402
from mvcca.deep.steps import descend, figures_of, mean_figures, parameter_groups  # noqa: E402
from mvcca.deep.trainer import Trainer, encoded  # noqa: E402

N = 120


def views(n=N, seed=0):
    return Views({name: X.astype(np.float32) for name, X in blocks(n, seed).items()})


def distance(scores, batch=None):  # noqa: ARG001, the signature of objectives
    F, G = scores.values()
    return (F - G).square().mean()


def new_trainer(objective=distance, callbacks=(), lr=1e-2, seed=0, torch_seed=None, **layers):
    generator = torch.Generator().manual_seed(seed)
    encoders = Encoders(
        {
            name: mlp(d, (4,), 2, generator=generator, **layers)
            for name, d in views(2).widths.items()
        }
    )
    return Trainer(
        encoders,
        objective,
        partial(torch.optim.RMSprop, lr=lr),
        sampler=ShuffledBatches(40),
        callbacks=callbacks,
        seed=seed,
        torch_seed=torch_seed,
    )


def weights_of(trainer):
    return [p.detach().clone() for module in trainer.modules for p in module.parameters()]


def assert_equal_weights(one, other):
    for a, b in zip(one, other, strict=True):
        assert torch.equal(a, b)


class Script(Callback):
    """Does something at the end of an epoch, or says what the validation loss was."""

    def __init__(self, at_end):
        self.at_end = at_end

    def on_epoch_end(self, trainer):
        self.at_end(trainer)


# ---- epochs --------------------------------------------------------------------------------------


def test_an_objective_sees_epochs_from_one_and_the_rows_of_each_batch():
    seen = []

    def objective(scores, batch):
        if torch.is_grad_enabled():
            X = batch.views["image"].numpy()
            np.testing.assert_array_equal(X, views()["image"][batch.rows])
            seen.append((batch.epoch, batch.rows))
        return distance(scores, batch)

    new_trainer(objective).train(views(), 3)
    assert [epoch for epoch, _ in seen] == [1, 1, 1, 2, 2, 2, 3, 3, 3]
    first = np.concatenate([rows for epoch, rows in seen if epoch == 1])
    assert sorted(first.tolist()) == list(range(N))


def test_a_bare_torch_loop_takes_the_same_steps():
    trainer = new_trainer()
    encoders = copy.deepcopy(trainer.encoders)
    trainer.train(views(), 2)
    optimizer = torch.optim.RMSprop(encoders.parameters(), lr=1e-2)
    rng, data = np.random.default_rng(0), views()
    for _ in range(2):
        for rows in ShuffledBatches(40)(Sample(data), rng):
            batch = {name: torch.from_numpy(X[rows[name]]) for name, X in data.items()}
            optimizer.zero_grad()
            distance(encoders(batch)).backward()
            optimizer.step()
    assert_equal_weights(encoders.parameters(), trainer.encoders.parameters())


@pytest.mark.parametrize(
    "change",
    [
        lambda X: X.astype(np.float64),
        csr_array,
        lambda X: np.asfortranarray(X),
        lambda X: np.frombuffer(X.tobytes(), X.dtype).reshape(X.shape),
    ],
    ids=["float64", "sparse", "Fortran", "read-only"],
)
def test_the_form_of_rows_does_not_change_the_steps(change):
    plain, other = new_trainer(), new_trainer()
    plain.train(views(), 2)
    other.train(Views({name: change(X) for name, X in views().items()}), 2)
    assert_equal_weights(weights_of(plain), weights_of(other))


def test_rows_held_on_a_device_give_the_same_batches(monkeypatch):
    codes = np.arange(N) % 7
    p, q = views().names
    sample = Sample(views(), {p: codes, q: codes[::-1].copy()})
    encoders = new_trainer().encoders
    plain, held = (Batches(sample, torch.device("cpu"), encoders) for _ in range(2))
    held.hold()
    monkeypatch.setattr("mvcca.deep._training.rows._MOST_POSITIONS", 100)  # several copies

    def drawn(rows):
        rng = np.random.default_rng(0)
        unequal = ({n: rng.permutation(N)[:30] for n in (p, q)} for _ in range(5))
        equal = ShuffledBatches(40)(rows.sample, rng)
        return list(rows.batches([*unequal, *equal], 1, 1))

    for ours, theirs in zip(drawn(held), drawn(plain), strict=True):
        for kind in ("views", "labels"):
            one, other = getattr(ours, kind), getattr(theirs, kind)
            assert one.keys() == other.keys()
            assert all(torch.equal(one[name], other[name]) for name in one)
        np.testing.assert_equal(ours.rows, theirs.rows)


def test_rows_on_disk_give_the_same_steps(tmp_path):
    files = {}
    for name, X in views().items():
        np.save(tmp_path / f"{name}.npy", X)
        files[name] = np.load(tmp_path / f"{name}.npy", mmap_mode="r")
    plain, other = new_trainer(), new_trainer()
    plain.train(views(), 2, views(30, seed=1))
    lazy = Views(files)
    assert lazy.is_lazy
    other.train(lazy, 2, views(30, seed=1))
    assert_equal_weights(weights_of(plain), weights_of(other))


def test_validation_loss_is_of_all_rows_at_once_in_evaluation():
    class OneBatch(nn.Module):
        def forward(self, scores, batch):
            if not self.training:
                assert len(batch.rows) == 77
                sizes.append(len(scores["image"]))
            return distance(scores, batch)

    sizes = []
    trainer = new_trainer(OneBatch())
    trainer.train(views(), 2, views(77, seed=1))
    assert sizes == [77, 77]
    scores = trainer.scores(views(77, seed=1))
    expected = distance({name: torch.from_numpy(F) for name, F in scores.items()})
    best = trainer.history[trainer.best_epoch - 1]["valid_loss"]
    assert best == pytest.approx(expected.item(), rel=1e-5)


def test_history_has_the_same_columns_for_every_epoch():
    trainer = new_trainer(callbacks=[ValidationScore("total_correlation")])
    trainer.train(views(), 3, views(50, seed=1))
    columns = ["epoch", "loss", "valid_loss", "valid_total_correlation", "learning_rate",
               "skipped", "seconds"]  # fmt: skip
    assert [list(figures) for figures in trainer.history] == [columns] * 3


def test_total_correlation_is_that_of_linear_cca_of_the_scores():
    from mvcca import MVCCA
    from mvcca.measures import total_correlation

    valid, found = views(50, seed=1), []

    def scores(trainer, rows):
        return {name: F.astype(np.float64) for name, F in trainer.scores(rows).items()}

    def check(trainer):
        model = MVCCA(2, reg=1e-4).fit(scores(trainer, views()))
        left, right = model.transform(scores(trainer, valid)).values()
        found.append(total_correlation(left, right))

    trainer = new_trainer(callbacks=[ValidationScore("total_correlation"), Script(check)])
    trainer.train(views(), 2, valid)
    assert [f["valid_total_correlation"] for f in trainer.history] == pytest.approx(found)


def test_weight_decay_spares_the_gates():
    gates = StochasticGates(3)
    plain, spared = parameter_groups([nn.Sequential(gates, nn.Linear(3, 2))])
    assert spared["weight_decay"] == 0
    assert [id(p) for p in spared["params"]] == [id(gates.means)]
    assert len(plain["params"]) == 2


class TakeScores(Callback):
    def on_epoch_begin(self, trainer):
        trainer.scores(trainer.rows.views)

    def on_batch_end(self, trainer):
        trainer.scores(trainer.rows.views)


def test_taking_scores_in_a_callback_changes_no_step():
    plain, watched = new_trainer(), new_trainer(callbacks=[TakeScores()])
    plain.train(views(), 3)
    watched.train(views(), 3)
    assert_equal_weights(weights_of(watched), weights_of(plain))
    for (name, one), other in zip(
        watched.encoders.state_dict().items(), plain.encoders.state_dict().values(), strict=True
    ):
        assert torch.equal(one, other), name


def test_taking_scores_leaves_every_layer_in_its_own_mode():
    trainer = new_trainer()
    trainer.encoders.train()
    frozen = trainer.encoders["image"][1].eval()
    before = [layer.training for layer in trainer.encoders.modules()]
    trainer.scores(views())
    assert [layer.training for layer in trainer.encoders.modules()] == before
    assert not frozen.training


@pytest.mark.parametrize("given", [False, True], ids=["fraction", "X_val"])
def test_rows_of_a_batch_are_positions_in_the_users_rows(given):
    data, valid, seen = views(), views(30, seed=1), {True: [], False: []}

    class Noted(nn.Module):
        def forward(self, scores, batch):
            rows = valid if given and not self.training else data
            for name, X in batch.views.items():
                np.testing.assert_array_equal(X.numpy(), rows[name][batch.rows])
            if batch.epoch == 1:
                seen[self.training].extend(batch.rows.tolist())
            return distance(scores)

    model = EncoderCCA(2, objective=Noted(), hidden_layer_sizes=(4,)).set_params(**SMALL)
    model.set_params(batch_size=10, max_epochs=2, standardize=False)
    if given:
        model.fit(data, X_val=valid)
        assert sorted(seen[False]) == list(range(30))
        assert sorted(seen[True]) == list(range(N))
        return
    model.set_params(validation_fraction=0.25).fit(data)
    assert sorted(seen[True] + seen[False]) == list(range(N))
    assert len(seen[False]) == 30
    for rows in seen.values():
        rows.clear()
    weights = np.arange(N) % 3
    model.set_params(batch_size=2, validation_fraction=0.5).fit(data, sample_weight=weights)
    present = np.flatnonzero(weights)
    held_out = set(seen[False])
    assert len(held_out) == len(present) // 2
    assert held_out.isdisjoint(seen[True])  # copies stay together
    assert sorted(seen[True] + seen[False]) == np.repeat(np.arange(N), weights).tolist()


@pytest.mark.parametrize(("n_features", "n_blocks"), [(6, 1), (5000, 4)])
def test_rows_with_many_features_are_encoded_a_few_at_a_time(n_features, n_blocks):
    network, sizes = nn.Linear(n_features, 2), []
    network.register_forward_hook(lambda module, X, out: sizes.append(len(out)))  # noqa: ARG005
    X = np.random.default_rng(0).standard_normal((800, n_features)).astype(np.float32)
    scores = encoded(network, "image", X)
    assert len(sizes) == n_blocks
    with torch.no_grad():
        np.testing.assert_allclose(scores, network(torch.from_numpy(X)).numpy(), atol=1e-5)


# ---- the best weights ----------------------------------------------------------------------------


class Scripted(nn.Module):
    """Validation losses by epoch, whatever the scores are."""

    def __init__(self, valid):
        super().__init__()
        self.valid = valid

    def forward(self, scores, batch):
        if self.training:
            return distance(scores, batch)
        return torch.tensor(float(self.valid[batch.epoch - 1]))


def test_the_weights_of_the_best_epoch_stay():
    kept = []
    trainer = new_trainer(
        Scripted([3, 1, 2, 5]), callbacks=[Script(lambda t: kept.append(weights_of(t)))]
    )
    trainer.train(views(), 4, views(50, seed=1))
    assert trainer.best_epoch == 2
    assert_equal_weights(weights_of(trainer), kept[1])


def test_without_validation_the_last_weights_stay():
    kept = []
    trainer = new_trainer(callbacks=[Script(lambda t: kept.append(weights_of(t)))])
    trainer.train(views(), 3)
    assert trainer.best_epoch == 3
    assert_equal_weights(weights_of(trainer), kept[2])


def test_early_stopping_ends_after_so_many_epochs_without_a_better_one():
    trainer = new_trainer(Scripted([5, 3, 4, 4, 1, 9, 9, 9]))
    trainer.patience = 3
    trainer.train(views(), 8, views(50, seed=1))
    assert (trainer.epoch, trainer.best_epoch) == (8, 5)
    trainer = new_trainer(Scripted([5, 3, 4, 4, 4, 1, 1, 1]))
    trainer.patience = 3
    trainer.train(views(), 8, views(50, seed=1))
    assert (trainer.epoch, trainer.best_epoch) == (5, 2)


def test_refinement_goes_back_three_times_with_a_tenth_of_the_rate_and_then_stops():
    weights, states = [], []

    def note(trainer):
        weights.append(weights_of(trainer))
        states.append(copy.deepcopy(trainer.optimizer.state_dict()["state"]))

    trainer = new_trainer(
        Scripted([2, 1] + [3] * 30),
        lr=1.0,
        callbacks=[Script(note), Refinement(3, 2, 3), Script(note)],
    )
    trainer.train(views(), 30, views(50, seed=1))
    # Best is 2; back after 5, 7 and 9; the end after 11.
    assert trainer.epoch == 11
    rates = [figures["learning_rate"] for figures in trainer.history]
    assert rates == pytest.approx([1.0] * 5 + [0.1] * 2 + [1e-2] * 2 + [1e-3] * 2)
    best = weights[2]
    for epoch in (5, 7, 9):
        before, after = weights[2 * epoch - 2], weights[2 * epoch - 1]
        assert not torch.equal(before[0], after[0])
        assert_equal_weights(after, best)
        assert torch.equal(states[2 * epoch - 1][0]["square_avg"], states[2][0]["square_avg"])
    assert_equal_weights(weights_of(trainer), best)


@pytest.mark.parametrize(
    "callback",
    [Refinement(3), ValidationScore("total_correlation")],
    ids=lambda c: type(c).__name__,
)
def test_what_needs_validation_rows_is_refused_without(callback):
    name = type(callback).__name__
    with pytest.raises(ValueError, match=f"{name} needs validation rows, and there are none"):
        new_trainer(callbacks=[callback]).train(views(), 1)
    options = {"standardize": False, "learning_rate": 1e-3}
    model = small(RESUMABLE[0], callbacks=[callback], **options)
    with pytest.raises(ValueError, match=f"{name} needs validation rows, and there are none"):
        model.fit(views())
    # One epoch more has no validation rows, whatever the epochs before had.
    model.fit(views(), X_val=views(50, seed=1)).partial_fit(views())
    assert len(model.history_["epoch"]) == 9


def test_the_highest_value_of_a_measured_column_may_decide_the_best_epoch():
    class Measured(Callback):
        def measure(self, trainer):
            return {"quality": [float("nan"), 1.0, 3.0, 3.0, 2.0][trainer.epoch - 1]}

    trainer = new_trainer(callbacks=[Measured()])
    trainer.monitor = "quality"
    trainer.train(views(), 5, views(50, seed=1))
    assert trainer.best_epoch == 3


def test_collapsed_networks_have_no_total_correlation():
    trainer = new_trainer(callbacks=[ValidationScore("total_correlation")])
    with torch.no_grad():
        trainer.encoders["image"][-2].weight.zero_()
    trainer.set_learning_rates([0.0])
    trainer.train(views(), 1, views(50, seed=1))
    assert np.isnan(trainer.history[0]["valid_total_correlation"])


# ---- interruption --------------------------------------------------------------------------------

RESUMABLE = [
    DCCA(2, reg=1e-2, start="random"),
    SoftCCA(2, start="random"),
    L0CCA(2, reg=1e-2),
    DSDCCA(2, reg=1e-2, warm_up=3, scaling_layer_sizes=(4,)),
    EncoderCCA(
        2,
        objective=distance,
        encoders={
            "image": nn.Sequential(nn.Dropout(0.3), nn.Linear(6, 2)),
            "text": nn.Sequential(nn.Dropout(0.3), nn.Linear(5, 2)),
        },
    ),
]
SMALL = {"batch_size": 40, "max_epochs": 8, "random_state": 0}


def small(estimator, **more):
    hidden = {} if estimator.encoders else {"hidden_layer_sizes": (4,)}
    return copy.deepcopy(estimator).set_params(**SMALL, **hidden, **more)


# In the first epoch, before and after scaling starts, with running covariances, gates and dropout.
INTERRUPTED = [(0, 1), (0, 3), (1, 6), (2, 6), (3, 3), (3, 6), (4, 6)]


@pytest.mark.parametrize(
    ("estimator", "epoch"),
    [(RESUMABLE[i], epoch) for i, epoch in INTERRUPTED],
    ids=lambda own: getattr(type(own), "__name__", own) if hasattr(own, "fit") else str(own),
)
def test_an_interrupted_fit_resumes_bit_for_bit(estimator, epoch, tmp_path):
    valid = views(60, seed=1)
    measured = ValidationScore("total_correlation")
    whole = small(estimator, callbacks=[measured]).fit(views(), X_val=valid)
    with config_context(checkpoint=tmp_path):
        with pytest.raises(KeyboardInterrupt):
            small(estimator, callbacks=[measured, Interrupt(epoch, steps=2)]).fit(
                views(), X_val=valid
            )
        assert any(tmp_path.iterdir()) == (epoch > 1)  # of an epoch that was done
        calls = []
        noted = Script(lambda t: calls.append(t.epoch))
        resumed = small(estimator, callbacks=[measured, noted]).fit(views(), X_val=valid)
    assert calls == list(range(epoch, 9))
    assert not any(tmp_path.iterdir())
    for name in ("epoch", "loss", "valid_loss", "valid_total_correlation"):
        np.testing.assert_array_equal(resumed.history_[name], whole.history_[name])
    for name, scores in whole.transform(valid).items():
        np.testing.assert_array_equal(resumed.transform(valid)[name], scores)


def test_refinement_resumes_where_it_was_interrupted_among_other_callbacks(tmp_path):
    objective = Scripted([2, 1] + [3] * 30)
    estimator = EncoderCCA(
        2,
        objective=objective,
        hidden_layer_sizes=(4,),
        monitor="valid_loss",
        callbacks=[Refinement(3, 2, 3)],
    ).set_params(**{**SMALL, "max_epochs": 30})
    whole = copy.deepcopy(estimator).fit(views(), X_val=views(50, seed=1))
    with config_context(checkpoint=tmp_path):
        with pytest.raises(KeyboardInterrupt):
            copy.deepcopy(estimator).set_params(callbacks=[Refinement(3, 2, 3), Interrupt(8)]).fit(
                views(), X_val=views(50, seed=1)
            )
        resumed = copy.deepcopy(estimator).set_params(callbacks=[Callback(), Refinement(3, 2, 3)])
        with config_context(progress=True):
            resumed.fit(views(), X_val=views(50, seed=1))
    np.testing.assert_array_equal(
        resumed.history_["learning_rate"], whole.history_["learning_rate"]
    )


def test_a_training_interrupted_after_its_last_epoch_is_not_repeated(tmp_path, monkeypatch):
    valid = views(60, seed=1)
    whole = small(RESUMABLE[0]).fit(views(), X_val=valid)
    with config_context(checkpoint=tmp_path):
        with monkeypatch.context() as patch:
            patch.setattr(DCCA, "_finish", _interrupted)
            with pytest.raises(KeyboardInterrupt):
                small(RESUMABLE[0]).fit(views(), X_val=valid)
        calls = []
        resumed = small(RESUMABLE[0], callbacks=[Script(lambda t: calls.append(t.epoch))])
        resumed.fit(views(), X_val=valid)
    assert not calls
    assert not any(tmp_path.iterdir())
    for name, scores in whole.transform(valid).items():
        np.testing.assert_array_equal(resumed.transform(valid)[name], scores)


def _interrupted(*_):
    raise KeyboardInterrupt


def test_a_checkpoint_of_other_parameters_or_data_is_refused(tmp_path):
    valid = {"X_val": views(60, seed=1)}
    changes = [{"learning_rate": 0.5}, {"batch_size": 60}, {"reg": 0.5}]
    others = [(small(RESUMABLE[0]).set_params(**own), views(), valid) for own in changes]
    others += [(small(RESUMABLE[0]), views(seed=4), valid)]
    others += [(small(RESUMABLE[0]), views(), {"X_val": views(60, seed=2)})]
    with config_context(checkpoint=tmp_path):
        with pytest.raises(KeyboardInterrupt):
            small(RESUMABLE[0], callbacks=[Interrupt(3)]).fit(views(), **valid)
        for model, rows, more in others:
            with pytest.raises(ValueError, match="other data or parameters"):
                model.fit(rows, **more)


def nearer(weight):
    def objective(scores, batch):  # noqa: ARG001
        return weight * distance(scores)

    return objective


def wired(activation, bias=True):
    return [nn.Sequential(nn.Linear(d, 2, bias=bias), activation) for d in (6, 5)]


OTHERS = {  # a training that was interrupted, and one that is not the same
    "regularised less": ({"objective": TraceNormLoss(1e-4)}, {"objective": TraceNormLoss(10.0)}),
    "another value enclosed": ({"objective": nearer(1.0)}, {"objective": nearer(2.0)}),
    "another function": ({"objective": nearer(1.0)}, {"objective": distance}),
    "another activation": ({"encoders": wired(nn.Tanh())}, {"encoders": wired(nn.Sigmoid())}),
    "a layer without bias": ({"encoders": wired(nn.Tanh())}, {"encoders": wired(nn.Tanh(), False)}),
    "another seed": ({"random_state": 0}, {"random_state": 1}),
    "another momentum": (
        {"optimizer": partial(torch.optim.SGD, momentum=0.5)},
        {"optimizer": partial(torch.optim.SGD, momentum=0.9)},
    ),
}


@pytest.mark.parametrize(("one", "other"), OTHERS.values(), ids=OTHERS)
def test_a_training_of_other_parts_does_not_resume(one, other, tmp_path):
    sizes = {} if "encoders" in one else {"hidden_layer_sizes": (4,)}
    model = EncoderCCA(2, objective=distance).set_params(**{**SMALL, **sizes, **one})
    with config_context(checkpoint=tmp_path):
        with pytest.raises(KeyboardInterrupt):
            copy.deepcopy(model).set_params(callbacks=[Interrupt(3)]).fit(views())
        with pytest.raises(ValueError, match="other data or parameters"):
            copy.deepcopy(model).set_params(**other).fit(views())
        model.fit(views())
    assert not any(tmp_path.iterdir())


def test_random_state_none_resumes_with_the_rows_that_were_set_aside(tmp_path):
    drawn = {"random_state": None, "validation_fraction": 0.25}
    seen = []
    with config_context(checkpoint=tmp_path):
        model = small(RESUMABLE[4], callbacks=[note_rows(seen), Interrupt(4)]).set_params(**drawn)
        with pytest.raises(KeyboardInterrupt):
            model.fit(views())
        resumed = small(RESUMABLE[4], callbacks=[note_rows(seen)]).set_params(**drawn).fit(views())
    assert len(resumed.history_["epoch"]) == 8
    before, after = seen
    np.testing.assert_array_equal(before, after)


def note_rows(seen):
    class Noted(Callback):
        def on_train_begin(self, trainer):
            seen.append(trainer.validation.positions["image"])

    return Noted()


PROCESS = """
import sys, numpy as np, torch
from torch import nn
from mvcca import config_context
from mvcca.deep import EncoderCCA
from mvcca.deep.callbacks import Callback

MARGIN = float(sys.argv[2])

def objective(scores, batch):
    F, G = scores.values()
    return (F - G).square().mean() + sum(MARGIN for _ in range(2))

class Interrupt(Callback):
    def on_batch_end(self, trainer):
        if trainer.epoch == 3:
            raise KeyboardInterrupt

X = np.random.default_rng(0).standard_normal((60, 4)).astype("f4")
model = EncoderCCA(
    2, objective=objective, encoders=[nn.Linear(2, 2), nn.Linear(2, 2)], batch_size=20,
    max_epochs=5, validation_fraction=0.2,
    callbacks=[Interrupt()] if sys.argv[3:] else [],
)
with config_context(checkpoint=sys.argv[1]):
    try:
        print(model.fit([X[:, :2], X[:, 2:]]).history_["epoch"].tolist())
    except KeyboardInterrupt:
        print("interrupted")
    except ValueError as error:
        print(error)
"""


@pytest.mark.slow
@pytest.mark.long  # three processes; CI compares identities in one (test_deep_identity.py)
def test_a_function_as_objective_resumes_in_a_new_process(tmp_path):
    def run(*arguments):
        command = [sys.executable, "-c", PROCESS, str(tmp_path), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    assert run("0.5", "interrupt") == "interrupted\n"
    assert "with other data or parameters" in run("0.25")
    assert run("0.5") == "[1, 2, 3, 4, 5]\n"


def test_an_interrupted_fit_leaves_the_estimator_as_it_was():
    model = small(RESUMABLE[0]).fit(views())
    before, scores = dict(vars(model)), model.transform(views())
    model.set_params(callbacks=[Interrupt(2)])
    with pytest.raises(KeyboardInterrupt):
        model.fit(views(seed=3))
    model.set_params(callbacks=())
    assert vars(model) == before
    for name, expected in scores.items():
        np.testing.assert_array_equal(model.transform(views())[name], expected)


# ---- random numbers ------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", RESUMABLE[2::2], ids=lambda e: type(e).__name__)
def test_a_seed_decides_everything_and_global_generators_are_left_alone(estimator):
    torch_state, numpy_state = torch.get_rng_state(), np.random.get_state()[1]  # noqa: NPY002
    one = small(estimator).fit(views())
    assert torch.equal(torch.get_rng_state(), torch_state)
    np.testing.assert_array_equal(np.random.get_state()[1], numpy_state)  # noqa: NPY002
    torch.manual_seed(123)
    np.random.seed(123)  # noqa: NPY002
    two = small(estimator).fit(views())
    np.testing.assert_array_equal(one.history_["loss"], two.history_["loss"])
    other = small(estimator).set_params(random_state=1).fit(views())
    assert not np.array_equal(one.history_["loss"], other.history_["loss"])


# ---- what is not finite --------------------------------------------------------------------------


def test_steps_that_are_not_finite_are_skipped_and_counted():
    calls = []

    def objective(scores, batch):
        calls.append(None)
        return distance(scores, batch) * (float("nan") if len(calls) in (2, 5) else 1)

    trainer = new_trainer(objective)
    trainer.train(views(), 3)
    assert [figures["skipped"] for figures in trainer.history] == [1, 1, 0]
    assert all(w.isfinite().all() for w in weights_of(trainer))
    assert all(np.isfinite(figures["loss"]) for figures in trainer.history)


def test_gradients_that_are_not_finite_are_skipped_where_the_loss_is():
    def objective(scores, batch):
        F = scores["image"]
        nothing = (F - F).square().sum()
        return distance(scores, batch) + (nothing.sqrt() if len(trainer.history) == 0 else 0)

    trainer = new_trainer(objective)
    with pytest.raises(ValueError, match="not finite from the first epoch"):
        trainer.train(views(), 3)
    assert all(w.isfinite().all() for w in weights_of(trainer))


@pytest.mark.parametrize("bad", [None, "loss", "gradient"])
def test_a_step_on_a_gpu_without_finite_numbers_has_no_gradient(bad):
    weights = [torch.ones(3, 2, requires_grad=True), torch.ones(4, requires_grad=True)]
    optimizer = torch.optim.SGD(weights, lr=0.5)
    x = torch.tensor([1.0, 2, 3, np.inf if bad == "gradient" else 4])
    loss = weights[0].sum() + (weights[1] * x)[: 3 if bad == "gradient" else 4].sum()
    if bad == "gradient":
        loss = loss + (weights[1][3] - 1).abs().sqrt()  # finite, with an infinite slope
    if bad == "loss":
        loss = loss * torch.tensor(np.nan)
    is_finite = descend(optimizer, loss, torch.device("cuda"))  # whose name decides
    assert bool(is_finite) == (bad is None)
    expected = [torch.full((3, 2), 0.5), 1 - 0.5 * x] if bad is None else [torch.ones(3, 2), 1]
    for weight, value in zip(weights, expected, strict=True):
        assert (weight == value).all()


def test_losses_are_added_up_at_the_end_as_one_by_one(monkeypatch):
    monkeypatch.setattr("mvcca.deep.steps._MOST", 3)
    steps, expected, buffer = [], {"loss": 0.0, "loss_a": 0.0, "loss_b": 0.0}, torch.ones(())
    for number, value in enumerate(np.random.default_rng(0).random(8).astype(np.float32)):
        loss = torch.tensor(value) if number % 4 == 1 else {"a": torch.tensor(value), "b": buffer}
        is_finite = number != 4
        steps.append((torch.tensor(is_finite), figures_of(loss)))
        total = loss if number % 4 == 1 else torch.tensor(value) + buffer
        expected["loss"] += float(total) * is_finite
        if number % 4 != 1:
            expected["loss_a"] += float(value) * is_finite
            expected["loss_b"] += float(buffer) * is_finite
        buffer += 1  # terms may be buffers that change
    means, n_steps, n_finite = mean_figures(steps)
    assert (n_steps, n_finite) == (8, 7)
    assert means == {name: total / 7 for name, total in expected.items()}


def test_an_epoch_without_a_finite_step_is_done_again_at_half_the_rate():
    calls = []

    def objective(scores, batch):
        calls.append(None)
        return distance(scores, batch) * (float("inf") if 3 < len(calls) <= 6 else 1)

    trainer = new_trainer(objective, lr=0.1)
    trainer.train(views(), 3)
    assert [figures["epoch"] for figures in trainer.history] == [1, 2, 3]
    assert [figures["learning_rate"] for figures in trainer.history] == [0.1, 0.05, 0.05]


def test_a_loss_that_stays_infinite_ends_the_training_with_the_last_good_weights():
    kept = []

    def objective(scores, batch):
        return distance(scores, batch) * (float("nan") if batch.epoch > 2 else 1)

    trainer = new_trainer(objective, callbacks=[Script(lambda t: kept.append(weights_of(t)))])
    with pytest.warns(ConvergenceWarning, match="is not finite after epoch 2"):
        trainer.train(views(), 9)
    assert trainer.epoch == 2
    assert_equal_weights(weights_of(trainer), kept[1])


# ---- parameters that come in later ---------------------------------------------------------------


def test_scaling_networks_start_after_the_warm_up_with_an_optimiser_state_of_their_own():
    seen = {}

    def note(trainer):
        layer = next(m for m in trainer.encoders.modules() if hasattr(m, "scaled"))
        state = trainer.optimizer.state.get(layer.last.weight, {})
        main = trainer.optimizer.state[layer.linear.weight]
        seen[trainer.epoch] = (
            layer.scaled,
            int(state.get("step", 0)),
            int(main["step"]),
            layer.last.weight.detach().clone(),
        )

    model = small(RESUMABLE[3], callbacks=[Script(note)]).set_params(max_epochs=5).fit(views())
    assert [seen[epoch][:3] for epoch in range(1, 6)] == [
        (False, 0, 3),
        (False, 0, 6),
        (False, 0, 9),
        (True, 3, 12),
        (True, 6, 15),
    ]
    assert torch.equal(seen[1][3], seen[3][3])
    assert not torch.equal(seen[3][3], seen[4][3])
    assert model.best_epoch_ == 5


@pytest.mark.parametrize("scaling", ["parameters", "outputs", "global"])
def test_with_the_same_seed_the_losses_of_the_warm_up_are_those_of_deep_cca_bit_for_bit(scaling):
    scaled = small(RESUMABLE[3]).set_params(warm_up=5, scaling=scaling).fit(views())
    plain = (
        DCCA(2, reg=1e-2, hidden_layer_sizes=(4,), start="random").set_params(**SMALL).fit(views())
    )
    ours, theirs = scaled.history_["loss"], plain.history_["loss"]
    np.testing.assert_array_equal(ours[:5], theirs[:5])
    assert ours[6] != theirs[6]


def test_without_parameters_to_scale_nothing_is_warmed_up():
    model = small(RESUMABLE[3]).set_params(warm_up=8, scaling="generated").fit(views())
    other = small(RESUMABLE[3]).set_params(warm_up=0, scaling="generated").fit(views())
    np.testing.assert_array_equal(model.history_["loss"], other.history_["loss"])


def test_the_best_epoch_of_the_warm_up_comes_back_without_scaling():
    model = small(RESUMABLE[3])

    class Early(DSDCCA):
        def _objective(self, encoders, widths, generator):
            return Scripted([5, 1, 3, 9, 9, 9, 9, 9])

    early = (
        Early(**model.get_params())
        .set_params(monitor="valid_loss")
        .fit(views(), X_val=views(60, seed=1))
    )
    assert early.best_epoch_ == 2
    layer = next(m for m in early.encoders_["image"] if hasattr(m, "scaled"))
    assert not layer.scaled
