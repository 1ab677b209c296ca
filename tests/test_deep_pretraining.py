"""Restricted Boltzmann machines against sums over all their states, and what they start."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

torch = pytest.importorskip("torch")

from deep_estimators import Interrupt  # noqa: E402

from mvcca import config_context  # noqa: E402
from mvcca.deep import CMDN, CorrAE, CrossCorrAE  # noqa: E402
from mvcca.deep._bases.pretrained import StageRows, divergence_of, train_stage  # noqa: E402
from mvcca.deep._networks.rbm import RBM  # noqa: E402
from mvcca.deep._training.training import Training  # noqa: E402
from mvcca.deep.callbacks import Callback  # noqa: E402
from mvcca.deep.samplers import Sample  # noqa: E402
from mvcca.views import Views  # noqa: E402

SMALL = {"max_epochs": 2, "batch_size": 30, "random_state": 0}
STATES = [torch.tensor(h, dtype=torch.float64) for h in itertools.product((0, 1), repeat=3)]
KINDS = ("bernoulli", "gaussian", "replicated_softmax")


def normal(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def machine(kind, n_visible=4, seed=0):
    """A machine with three hidden units and weights that are not small."""
    made = RBM(n_visible, 3, kind).double()
    for number, parameter in enumerate(made.parameters()):
        parameter.data = normal(*parameter.shape, seed=seed + number)
    return made


def rows(kind, n=5, n_visible=4):
    if kind == "gaussian":
        return normal(n, n_visible, seed=9)
    generator = torch.Generator().manual_seed(9)
    top = 2 if kind == "bernoulli" else 4
    return torch.randint(0, top, (n, n_visible), generator=generator).double()


def energy(rbm, v, h):
    """E(v, h), term by term."""
    W, c, b = rbm.weight.detach(), rbm.hidden_bias.detach(), rbm.visible_bias.detach()
    s = v.sum() if rbm.visible == "replicated_softmax" else 1
    quadratic = v.square().sum() / 2 if rbm.visible == "gaussian" else 0
    return quadratic - b @ v - s * (c @ h) - h @ W @ v


# ---- the machine ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_free_energies_and_hidden_units_are_sums_over_all_hidden_states(kind):
    rbm, V = machine(kind), rows(kind)
    for v, F, P in zip(V, rbm.free_energy(V), rbm(V), strict=True):
        weights = torch.stack([torch.exp(-energy(rbm, v, h)) for h in STATES])
        torch.testing.assert_close(F.detach(), -weights.sum().log())
        expected = sum(w * h for w, h in zip(weights, STATES, strict=True)) / weights.sum()
        torch.testing.assert_close(P.detach(), expected)


def test_bernoulli_units_have_their_expectation_given_hidden_ones():
    rbm = machine("bernoulli")
    visible = [torch.tensor(v, dtype=torch.float64) for v in itertools.product((0, 1), repeat=4)]
    for h in STATES:
        weights = torch.stack([torch.exp(-energy(rbm, v, h)) for v in visible])
        expected = sum(w * v for w, v in zip(weights, visible, strict=True)) / weights.sum()
        torch.testing.assert_close(rbm.mean(h[None])[0].detach(), expected)


def test_gaussian_units_have_their_expectation_given_hidden_ones():
    rbm = machine("gaussian", n_visible=1)
    grid = torch.linspace(-20, 20, 20_001, dtype=torch.float64)
    for h in STATES:
        density = torch.stack([torch.exp(-energy(rbm, v[None], h)) for v in grid[::10]])
        expected = (density * grid[::10]).sum() / density.sum()
        found = rbm.mean(h[None])[0, 0].detach()
        torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-8)


def documents(n_words, length):
    """All counts of a number of words, with the number of orders of each."""
    for counts in itertools.product(range(length + 1), repeat=n_words):
        if sum(counts) == length:
            n_orders = math.factorial(length) / math.prod(map(math.factorial, counts))
            yield torch.tensor(counts, dtype=torch.float64), n_orders


def test_replicated_softmax_is_the_distribution_of_ordered_words():
    rbm, length = machine("replicated_softmax"), 3
    by_order = dict.fromkeys((tuple(v.tolist()) for v, _ in documents(4, length)), 0.0)
    for words in itertools.product(range(4), repeat=length):
        v = torch.bincount(torch.tensor(words), minlength=4).double()
        total = sum(math.exp(-energy(rbm, v, h)) for h in STATES)
        by_order[tuple(v.tolist())] += total
    for v, n_orders in documents(4, length):
        ours = n_orders * math.exp(-rbm.free_energy(v[None]).item())
        assert ours == pytest.approx(by_order[tuple(v.tolist())])
    for h in STATES:  # words are drawn independently given hidden units
        weights = {v: n * math.exp(-energy(rbm, v, h)) for v, n in documents(4, length)}
        expected = sum(w * v for v, w in weights.items()) / sum(weights.values())
        torch.testing.assert_close(rbm.mean(h[None], 3.0)[0].detach(), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_the_gradient_of_contrastive_divergence_is_the_published_one(kind):
    rbm, V = machine(kind), rows(kind)
    torch.manual_seed(3)
    H = torch.bernoulli(rbm(V))
    W = rbm.mean(H, V.sum(dim=1, keepdim=True)).detach()
    torch.manual_seed(3)
    rbm.contrastive_divergence(V).backward()
    positive, negative = rbm(V), rbm(W)
    s = V.sum(dim=1, keepdim=True) if kind == "replicated_softmax" else 1.0
    torch.testing.assert_close(rbm.weight.grad, (negative.T @ W - positive.T @ V) / len(V))
    torch.testing.assert_close(rbm.visible_bias.grad, (W - V).mean(dim=0))
    torch.testing.assert_close(rbm.hidden_bias.grad, (s * (negative - positive)).mean(dim=0))


def test_a_machine_of_word_counts_starts_layers_for_texts_of_mean_length():
    rbm, V = machine("replicated_softmax"), rows("replicated_softmax")
    rbm.contrastive_divergence(V)
    layer, mirror = torch.nn.Linear(4, 3).double(), torch.nn.Linear(3, 4).double()
    rbm.start(layer, [mirror])
    torch.testing.assert_close(layer.bias, V.sum(dim=1).mean() * rbm.hidden_bias)
    torch.testing.assert_close(mirror.bias, rbm.visible_bias)


def log_likelihood(rbm, V):
    """Mean log probability of binary rows, by the sum over all of them."""
    visible = torch.tensor(list(itertools.product((0, 1), repeat=V.shape[1]))).double()
    return -(rbm.free_energy(V).mean() + torch.logsumexp(-rbm.free_energy(visible), dim=0))


def test_contrastive_divergence_points_up_the_likelihood_and_training_raises_it():
    prototypes = torch.tensor([[1, 1, 0, 0], [0, 0, 1, 1], [1, 1, 1, 1]]).double()
    V = prototypes[torch.arange(60) % 3]
    rbm = RBM(4, 3, generator=torch.Generator().manual_seed(0)).double()
    torch.manual_seed(0)
    up = torch.autograd.grad(log_likelihood(rbm, V), list(rbm.parameters()))
    down = [torch.zeros_like(part) for part in up]
    for _ in range(300):
        drawn = torch.autograd.grad(rbm.contrastive_divergence(V), list(rbm.parameters()))
        down = [total + part / 300 for total, part in zip(down, drawn, strict=True)]
    assert sum(float((a * b).sum()) for a, b in zip(up, down, strict=True)) < 0
    before, optimizer = log_likelihood(rbm, V).item(), torch.optim.Adam(rbm.parameters(), lr=0.05)
    for _ in range(600):
        optimizer.zero_grad()
        rbm.contrastive_divergence(V).backward()
        optimizer.step()
    best = -math.log(3)
    assert best >= log_likelihood(rbm, V).item() > best - 0.5 > before


def test_inference_of_missing_views_is_a_fixed_point_and_lowers_the_free_energy():
    joint = machine("bernoulli", n_visible=7)
    V, columns = rows("bernoulli", 6, 3), slice(2, 5)
    H = joint.inferred(V, columns, n_steps=500)
    others = joint.mean(H)
    full = others.clone()
    full[:, columns] = V
    torch.testing.assert_close(joint(full), H)
    start = torch.sigmoid(joint.visible_bias).repeat(6, 1)
    start[:, columns] = V
    once = joint.inferred(V, columns, n_steps=0)
    torch.testing.assert_close(once, joint(start))
    assert not torch.allclose(once, H)


@pytest.mark.slow
def test_a_joint_machine_infers_the_other_view():
    bits = torch.randint(0, 2, (400, 3), generator=torch.Generator().manual_seed(0)).float()
    sample = Sample(Views({"a": bits.numpy(), "b": 1 - bits.numpy()}))
    joint = RBM(6, 12, generator=torch.Generator().manual_seed(0))
    model = CMDN(pretraining_epochs=150, learning_rate=0.02, **SMALL)
    model.view_names_ = ("a", "b")
    stage = model._stage(Training.of(model, seeds=[0, 1, 2, 3]))
    train_stage("joint", divergence_of(joint), StageRows(sample, None), stage)
    H = joint.inferred(bits, slice(0, 3))
    assert ((joint.mean(H)[:, 3:] > 0.5) == (bits < 0.5)).float().mean() > 0.95


# ---- what it starts ------------------------------------------------------------------------------

CLASSES = np.arange(90) % 4
AUTOENCODERS = [
    CorrAE(4, hidden_layer_sizes={"image": (8, 6), "text": (7,)}, **SMALL),
    CrossCorrAE(4, hidden_layer_sizes=(8,), full=True, **SMALL),
]


def blocks(n=90):
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((n, 2)) + np.eye(4, 2)[np.arange(n) % 4]
    image = np.tanh(Z @ rng.standard_normal((2, 6))) + 0.3 * rng.standard_normal((n, 6))
    return {"image": image, "text": rng.poisson(np.exp(Z @ rng.standard_normal((2, 5)) / 2)) + 0.0}


COUNTS = {"image": "gaussian", "text": "replicated_softmax"}


class FirstLayers(Callback):
    """Notes the networks and decoders that training starts from."""

    seen: list[Any]

    def on_train_begin(self, trainer):
        networks = {name: trainer.encoders[name] for name in trainer.encoders.names}
        type(self).seen = [
            {name: [p.detach().clone() for p in N.parameters()] for name, N in networks.items()},
            [[p.detach().clone() for p in D.parameters()] for D in trainer.objective.decoders],
            trainer.objective.ways,
        ]


@pytest.mark.parametrize("estimator", AUTOENCODERS, ids=["own", "full"])
def test_machines_start_the_layers_and_their_transposes_the_decoders(estimator):
    model = clone(estimator).set_params(
        pretraining="rbm", pretraining_epochs=3, likelihood=COUNTS, callbacks=[FirstLayers()]
    )
    model.fit(blocks())
    networks, decoders, ways = FirstLayers.seen
    for (_, target), decoder in zip(ways, decoders, strict=True):
        weights, mirrored = networks[target][::2], decoder[::2][::-1]
        for W, M in zip(weights, mirrored, strict=True):
            torch.testing.assert_close(W, M.T)
    random = clone(model).set_params(pretraining=None).fit(blocks())
    assert not np.allclose(random.history_["loss"], model.history_["loss"])


def test_machines_lower_the_loss_that_an_autoencoder_starts_from():
    options = {"hidden_layer_sizes": (16,), "random_state": 0, "max_epochs": 1}
    model = CorrAE(8, correspondence=0.0, learning_rate=3e-3, **options).fit(blocks(600))
    started = clone(model).set_params(pretraining="rbm").fit(blocks(600))
    assert started.history_["loss"][0] < 0.8 * model.history_["loss"][0]


def test_networks_of_ones_own_are_not_started_by_machines():
    encoders = {"image": torch.nn.Linear(6, 4), "text": torch.nn.Linear(5, 4)}
    with pytest.raises(ValueError, match="pretraining='rbm' is for the default networks of CorrAE"):
        CorrAE(4, pretraining="rbm", encoders=encoders, **SMALL).fit(blocks())


# ---- stages --------------------------------------------------------------------------------------

STAGED = CMDN(3, width=8, pretraining_epochs=2, likelihood=COUNTS, n_levels=3, **SMALL)


def test_only_the_last_level_is_trained_in_the_epochs_of_the_history():
    one, more = (clone(STAGED).set_params(max_epochs=n).fit(blocks(), CLASSES) for n in (1, 3))
    for name in ("image", "text"):
        first, second = (dict(model.encoders_[name].state_dict()) for model in (one, more))
        changed = {key for key, value in first.items() if not torch.equal(value, second[key])}
        last = len(one.encoders_[name]) - 1
        assert changed == {f"{last}.0.weight", f"{last}.0.bias"}
    assert len(more.history_["loss"]) == 3


@pytest.mark.parametrize("stage", [2, 7])
def test_a_fit_interrupted_in_any_stage_starts_over_and_ends_the_same(stage, tmp_path, monkeypatch):
    whole, parts = clone(STAGED).fit(blocks(), CLASSES), clone(STAGED)
    seen = []

    def interrupted(title, *arguments):
        seen.append(title)
        if len(seen) == stage + 1:
            raise KeyboardInterrupt
        return train_stage(title, *arguments)

    monkeypatch.setattr("mvcca.deep._methods.cmdn.train_stage", interrupted)
    with config_context(checkpoint=tmp_path):
        with pytest.raises(KeyboardInterrupt):
            parts.fit(blocks(), CLASSES)
        assert not list(tmp_path.iterdir())
        parts.fit(blocks(), CLASSES)
    assert len(seen) == stage + 1 + 9
    for name, scores in whole.transform(blocks()).items():
        np.testing.assert_array_equal(parts.transform(blocks())[name], scores)


def test_a_fit_interrupted_in_its_last_level_does_not_repeat_the_stages(tmp_path, monkeypatch):
    whole = clone(STAGED).set_params(max_epochs=3).fit(blocks(), CLASSES)
    parts = clone(whole).set_params(callbacks=[Interrupt(2)])
    with config_context(checkpoint=tmp_path):
        with pytest.raises(KeyboardInterrupt):
            parts.fit(blocks(), CLASSES)
        monkeypatch.setattr("mvcca.deep._methods.cmdn.train_stage", None)
        parts.set_params(callbacks=()).fit(blocks(), CLASSES)
    for name, scores in whole.transform(blocks()).items():
        np.testing.assert_array_equal(parts.transform(blocks())[name], scores)


def test_progress_names_the_stages(capsys):
    with config_context(progress=True):
        clone(STAGED).fit(blocks(), CLASSES)
    lines = capsys.readouterr().err.splitlines()
    titles = list(dict.fromkeys(line.split(": epoch")[0] for line in lines))
    assert titles[:3] == ["machines of layer 1", "machines of layer 2", "joint machine"]
    assert titles[3:8] == [
        "autoencoders of depth 1", "autoencoders of depth 2", "fusion", "classifiers", "level 1",
    ]  # fmt: skip
    assert titles[8] == "level 2"
    assert lines[-1].startswith("epoch 2/2")


def test_stages_that_do_not_fit_in_memory_are_refused(monkeypatch):
    monkeypatch.setattr("mvcca.deep._training.host._LITTLE", 0)
    monkeypatch.setattr("mvcca.deep._training.host.available_bytes", lambda: 10**6)
    with pytest.raises(MemoryError, match="needs about 1,105,920 bytes"):
        clone(STAGED).set_params(width=256).fit(blocks(), CLASSES)


def test_three_views_share_a_joint_machine():
    views = blocks() | {"sound": blocks()["image"][:, :3] ** 2}
    model = clone(STAGED).set_params(likelihood="gaussian").fit(views, CLASSES)
    machines = [E[1].inference.machine for E in model.encoders_.values()]
    assert machines[0] is machines[1] is machines[2]
    assert {scores.shape for scores in model.transform(views).values()} == {(90, 3)}
