"""Encoder builders: published shapes, and outputs against formulas."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from mvcca.deep.encoders import WCNN, WordCNN, WordCNNRNN, cnn, vgg  # noqa: E402


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def tokens_of(*sentences, length):
    rows = [[*sentence, *[0] * (length - len(sentence))] for sentence in sentences]
    return torch.tensor(rows)


SENTENCES = [[3, 1, 4, 1, 5, 9], [2, 6], [5, 3, 5, 8, 9, 7, 9, 3, 2, 3], [8]]
TEXT_ENCODERS = {
    "WCNN": lambda g=None: WCNN(12, widths=(1, 2, 4), n_filters=5, generator=g),
    "WordCNN": lambda g=None: WordCNN(12, 6, length=18, n_filters=8, hidden_size=10, generator=g),
    "WordCNNRNN": lambda g=None: WordCNNRNN(
        12, 6, length=18, n_filters=8, hidden_size=10, generator=g
    ),
}
every_text_encoder = pytest.mark.parametrize("build", TEXT_ENCODERS.values(), ids=TEXT_ENCODERS)
BUILDERS = TEXT_ENCODERS | {
    "cnn": lambda g=None: cnn((1, 8, 8), 3, channels=(4,), hidden_layer_sizes=(5,), generator=g),
    "vgg": lambda g=None: vgg((1, 16, 16), 3, channels=(4, 4), generator=g),
}


# ---- published shapes ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("widths", "n_filters"), [(range(3, 9), 50), (range(1, 6), 60)], ids=["3-8", "1-5"]
)
def test_wcnn_has_the_300_outputs_of_both_published_settings(widths, n_filters):
    network = WCNN(4576, widths=widths, n_filters=n_filters)
    tokens = torch.randint(1, 4576, (3, 20), generator=generator())
    assert network(tokens).shape == (3, 300)
    assert network.words.weight.shape == (4576, 25)
    shapes = [layer.weight.shape for layer in network.filters]
    assert shapes == [(n_filters, 25, width) for width in widths]


@pytest.mark.parametrize("shape", [(1, 40, 100), (1, 136, 100)], ids=["sheet", "spectrogram"])
def test_vgg_is_that_of_table_7(shape):
    network = vgg(shape)
    X = torch.randn(2, int(np.prod(shape)), generator=generator())
    assert network(X).shape == (2, 32)
    convolutions = [layer for layer in network if isinstance(layer, nn.Conv2d)]
    assert [c.out_channels for c in convolutions] == [16, 16, 32, 32, 64, 64, 64, 64, 32]
    assert [c.kernel_size for c in convolutions] == [(3, 3)] * 8 + [(1, 1)]
    pixels = nn.Sequential(*list(network)[:-2])(X).shape[2:]
    assert pixels == (shape[1] // 16, 6)


def test_the_text_networks_are_those_of_table_9():
    tokens = torch.randint(0, 500, (4, 30), generator=generator())
    flat, recurrent = WordCNN(500), WordCNNRNN(500)
    assert flat(tokens).shape == recurrent(tokens).shape == (4, 64)
    for network in (flat, recurrent):
        convolutions = [m for m in network.modules() if isinstance(m, nn.Conv1d)]
        assert [c.weight.shape for c in convolutions] == [(256, 500, 3)] + [(256, 256, 3)] * 2
        assert network._convolved(tokens).shape == (4, 256, 6)  # 30 / 3 - 2 - 2
    assert [m.weight.shape for m in flat.last if isinstance(m, nn.Linear)] == [
        (1024, 6 * 256),
        (64, 1024),
    ]
    assert (recurrent.recurrent.input_size, recurrent.recurrent.hidden_size) == (256, 512)


# ---- formulas ------------------------------------------------------------------------------------


def test_wcnn_is_the_loop_over_windows():
    network = TEXT_ENCODERS["WCNN"](generator())
    found = network(tokens_of(*SENTENCES, length=11)).detach().numpy()
    vectors = network.words.weight.detach().numpy()
    for sentence, row in zip(SENTENCES, found, strict=True):
        expected = []
        for convolution in network.filters:
            W, b = convolution.weight.detach().numpy(), convolution.bias.detach().numpy()
            width = W.shape[2]
            words = np.array([vectors[word] for word in sentence])
            short = max(width - len(sentence), 0)
            words = np.vstack([words, np.zeros((short, words.shape[1]))])
            values = [
                np.einsum("fdw,wd->f", W, words[start : start + width]) + b
                for start in range(len(words) - width + 1)
            ]
            expected.append(np.maximum(np.max(values, axis=0), 0))
        np.testing.assert_allclose(row, np.concatenate(expected), atol=1e-5)


@every_text_encoder
def test_the_output_does_not_depend_on_the_amount_of_padding(build):
    network = build(generator()).eval()
    outputs = [network(tokens_of(*SENTENCES, length=n)) for n in (10, 11, 18)]
    for other in outputs[1:]:
        torch.testing.assert_close(outputs[0], other, rtol=0, atol=1e-6)
    alone = torch.cat([network(tokens_of(s, length=len(s))) for s in SENTENCES])
    torch.testing.assert_close(outputs[0], alone, rtol=0, atol=1e-6)


def test_the_padding_of_wcnn_gets_no_gradient_and_no_say():
    network = TEXT_ENCODERS["WCNN"](generator())
    network(tokens_of(*SENTENCES, length=18)).sum().backward()
    assert network.words.weight.grad[0].eq(0).all()
    assert network.words.weight[0].eq(0).all()
    assert network.words.weight.grad[[1, 3, 5]].abs().sum() > 0


def test_the_first_convolution_of_word_cnn_is_that_of_one_hot_words():
    network = TEXT_ENCODERS["WordCNN"](generator())
    first = network.convolutions["first"]
    tokens = tokens_of(*SENTENCES, length=18)
    one_hot = nn.functional.one_hot(tokens, 12).float()
    one_hot[..., 0] = 0  # padding has no entries
    expected = nn.functional.conv1d(one_hot.mT, first.weight, first.bias, padding="same")
    network.convolutions["others"] = nn.Identity()
    torch.testing.assert_close(network._convolved(tokens), expected)


def test_the_recurrent_network_averages_its_states_over_time():
    network = TEXT_ENCODERS["WordCNNRNN"](generator()).eval()
    tokens = tokens_of(*SENTENCES, length=18)
    steps = network._convolved(tokens)
    state, states = torch.zeros(1, len(tokens), 10), []
    for step in range(steps.shape[2]):
        _, state = network.recurrent(steps[:, :, step, None].mT, state)
        states.append(state[0])
    expected = network.last(torch.stack(states).mean(0))
    torch.testing.assert_close(network(tokens), expected)


# ---- all of them ---------------------------------------------------------------------------------


@pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS)
def test_weights_come_from_the_generator_and_not_from_torchs_global_one(build):
    torch.manual_seed(1)
    before = torch.get_rng_state()
    one, same, other = (build(generator(seed)).state_dict() for seed in (0, 0, 1))
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(one[name], same[name]) for name in one)
    weights = [name for name in one if name.endswith("weight") and one[name].ndim > 1]
    assert not any(torch.equal(one[name], other[name]) for name in weights)


@pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS)
def test_initial_weights_have_the_spread_of_torchs_own(build):
    ours = build(generator())
    for layer in ours.modules():
        if isinstance(layer, nn.Linear | nn.Conv1d | nn.Conv2d) and layer.weight.numel() > 100:
            bound = 1 / layer.weight[0].numel() ** 0.5
            assert layer.weight.abs().max() <= bound
            assert layer.weight.std().item() == pytest.approx(bound / 3**0.5, rel=0.25)


def test_convolutional_networks_take_flat_rows():
    X = torch.randn(5, 2 * 9 * 7, generator=generator())
    assert cnn((2, 9, 7), 3)(X).shape == (5, 3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cnn((1, 3, 8), 2), "too small for 2 stages"),
        (lambda: vgg((1, 8, 100)), "too small for 4 stages"),
        (lambda: WordCNN(10, length=14), "length must be at least 15, got 14"),
        (
            lambda: WordCNN(10, length=15)(torch.ones(2, 16, dtype=torch.int64)),
            "at most length=15 words, got 16",
        ),
    ],
    ids=["cnn", "vgg", "length", "words"],
)
def test_bad_shapes_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
