"""Where networks start: random weights, or linear CCA plus a network that begins as zero."""

from __future__ import annotations

from copy import deepcopy
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp

torch = pytest.importorskip("torch")

from deep_estimators import Interrupt, assert_equal_scores, small  # noqa: E402

from mvcca import CCA, Views, config_context, evaluate_retrieval, load, save  # noqa: E402
from mvcca.deep import CCAL, CLIP, DCCA, LearnedRanking, TwoBranch  # noqa: E402
from mvcca.deep._training.start import held_out, linear_start  # noqa: E402
from mvcca.deep._training.training import Training  # noqa: E402
from mvcca.deep.callbacks import Refinement  # noqa: E402
from mvcca.deep.encoders import Standardize, mlp  # noqa: E402
from mvcca.deep.objectives import Batch  # noqa: E402
from mvcca.deep.samplers import Sample  # noqa: E402

TINY = {"hidden_layer_sizes": (4,), "batch_size": 60, "random_state": 0}
UNTRAINED = pytest.mark.filterwarnings("ignore:.*networks are not trained:UserWarning")


def linear_views(n: int = 300, seed: int = 0) -> Views:
    """Views of six latent variables, related linearly, with columns in other units."""
    rng = np.random.default_rng(seed)
    maps = rng.standard_normal((2, 6, 12))
    Z = rng.standard_normal((n, 6))
    blocks = [Z @ W + 0.7 * rng.standard_normal((n, 12)) for W in maps]
    return Views({"image": 3 + blocks[0], "text": blocks[1] * 10.0})


def squared_views(n: int = 300, seed: int = 0) -> Views:
    """Views without correlation: one has the squares of what the other has."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    return Views({"image": X, "text": X**2 + 0.05 * rng.standard_normal((n, 3))})


VIEWS = linear_views()


STARTS: dict = {}


@pytest.fixture(autouse=True)
def each_start_is_computed_once(monkeypatch):
    """Tuned CCA of these few rows takes longer than the networks, and several tests start there."""

    def start(views, width):
        rows = [X.toarray() if sp.issparse(X) else np.asarray(X) for _, X in views.items()]
        kinds = [(name, type(X)) for name, X in views.items()]
        key = (width, *kinds, *(X.tobytes() for X in rows))
        if key not in STARTS:
            STARTS[key] = linear_start(views, width)
        return deepcopy(STARTS[key])

    monkeypatch.setattr("mvcca.deep._bases.started.linear_start", start)


def mrr(model, views) -> float:
    return evaluate_retrieval(views, estimator=model, measures="mrr").mean()["mrr"]


@pytest.mark.slow
@UNTRAINED
@pytest.mark.parametrize("cls", [LearnedRanking, CCAL])
def test_the_default_is_hardly_worse_than_tuned_cca_where_relations_are_linear(cls):
    new = linear_views(600)[300:]
    model = cls(6, max_epochs=4, **TINY).fit(VIEWS)
    assert model.start_ == "linear"
    assert set(model.start_history_) == {"features", "view", "linear"}
    assert model.start_history_["linear"]["epoch"][0] == 0
    random = cls(6, max_epochs=4, start="random", **TINY).fit(VIEWS)
    linear = CCA(6, reg="cv").fit(VIEWS)
    weighting = "likelihood-cosine" if cls is LearnedRanking else "auto"
    table = evaluate_retrieval(new, estimator=linear, measures="mrr", weighting=weighting)
    bar = table.mean()["mrr"]
    assert mrr(model, new) > bar - 0.02
    assert mrr(random, new) < bar - 0.1


@pytest.mark.slow
def test_random_weights_win_where_nothing_is_linear():
    views = squared_views(600)
    options = {**TINY, "hidden_layer_sizes": (16,), "max_epochs": 12}
    model = CCAL(3, **options).fit(views[:400])
    assert model.start_ in ("features", "view")
    assert mrr(model, views[400:]) > 2 * mrr(CCA(3, reg="cv").fit(views[:400]), views[400:])
    # It is what random weights give after as many epochs.
    same = {"start": "random", "standardize": model.start_ == "features" or "view"}
    again = CCAL(3, **options | {"max_epochs": model.best_epoch_}, **same).fit(views[:400])
    assert_equal_scores(model, again, views[400:])


@UNTRAINED
@pytest.mark.parametrize("cls", [LearnedRanking, DCCA])
def test_few_objects_give_the_scores_of_linear_cca(cls):
    views = VIEWS[:150]
    with pytest.warns(UserWarning, match=r"150 objects are fewer than the 200"):
        model = cls(4, **TINY).fit(views)
    assert (model.start_, model.best_epoch_, len(model.history_["epoch"])) == ("linear", 0, 0)
    linear = CCA(None, reg="cv").fit(views)
    for name, scores in model.transform(views).items():
        expected = linear.transform(views)[name][:, :4]
        correlations = [np.corrcoef(a, b)[0, 1] for a, b in zip(scores.T, expected.T, strict=True)]
        np.testing.assert_allclose(correlations, 1, atol=1e-5)
    if cls is DCCA:
        np.testing.assert_array_equal(
            model.expected_correlations_, linear.expected_correlations_[:4]
        )


@cache
def sparse_and_start(storage):
    """Views with zeros, stored in one way, and their linear start."""
    views = VIEWS.replace({n: storage(np.where(X > 3, X, 0)) for n, X in VIEWS.items()})
    return views, linear_start(views, 4)


@pytest.mark.parametrize("standardize", [True, False, "view", "auto"])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_a_linear_start_is_the_same_for_rows_of_any_scale_and_storage(standardize, storage):
    views, (affine, _) = sparse_and_start(storage)
    model = LearnedRanking(4, start="linear", standardize=standardize, **TINY)
    model.set_params(max_epochs=1, learning_rate=1e-12).fit(views)
    for name, scores in model.transform(views).items():
        W, b = affine[name]
        np.testing.assert_allclose(scores, views[name] @ W + b, atol=2e-4)
        np.testing.assert_allclose(np.square(views[name] @ W + b).mean(), 1, rtol=0.3)


def test_a_linear_start_trains_slowly_and_more_outputs_than_components_begin_as_zero():
    model = LearnedRanking(20, start="linear", max_epochs=1, **TINY).fit(VIEWS)
    np.testing.assert_array_equal(model.history_["learning_rate"], 5e-4)
    assert model.best_epoch_ == 1
    assert model.encoders_["image"](torch.zeros(2, 12).double()).shape == (2, 20)
    W, b = linear_start(VIEWS, 20)[0]["image"]
    assert not W[:, 12:].any()
    assert not b[12:].any()


def test_objects_that_share_a_row_are_held_out_together_and_at_most_1000():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.standard_normal((60, 4)), 5, axis=0)
    views = Views({"a": X, "b": rng.standard_normal((300, 3))})
    model = LearnedRanking(2, start="random", max_epochs=1, **TINY).fit(views)
    training = Training.of(model, [0, 0, 0, 1])
    train, held = held_out(Sample(views), None, training)
    assert len(train.views) + len(held.views) == 300
    assert 50 <= len(held.views) <= 70
    assert not set(map(tuple, train.views["a"])) & set(map(tuple, held.views["a"]))
    many = Views({"a": rng.standard_normal((7_000, 1)), "b": rng.standard_normal((7_000, 1))})
    assert len(held_out(Sample(many), None, training)[1].views) == 1_000


@UNTRAINED
@pytest.mark.parametrize("given", [{"X_val": linear_views(400)[300:]}, {}])
def test_validation_rows_of_the_user_decide_without_another_fit(given):
    fraction = None if given else 0.25
    model = LearnedRanking(4, max_epochs=2, validation_fraction=fraction, **TINY)
    model.fit(VIEWS, **given)
    history = model.start_history_[model.start_]
    own = model.history_["valid_mrr"]  # of the untrained start, epoch 0 only
    np.testing.assert_array_equal(own, history["valid_mrr"][: len(own)])
    assert model.best_epoch_ == history["epoch"][np.argmax(history["valid_mrr"])]


@UNTRAINED
def test_only_candidates_that_agree_with_standardize_take_part():
    model = LearnedRanking(4, standardize="view", max_epochs=1, **TINY).fit(VIEWS)
    assert set(model.start_history_) == {"view", "linear"}
    for standardize, start in ((True, "features"), (False, "random")):
        model.set_params(standardize=standardize).fit(VIEWS)
        assert model.start_ == start
        assert not hasattr(model, "start_history_")


def test_own_networks_are_not_wrapped():
    encoders = {"image": mlp(12, (3,), 2), "text": mlp(12, (3,), 2)}
    options = {n: v for n, v in TINY.items() if n != "hidden_layer_sizes"}
    model = LearnedRanking(2, encoders=encoders, max_epochs=1, **options).fit(VIEWS)
    assert model.start_ == "random"
    with pytest.raises(ValueError, match=r"start='linear' is for the default networks of features"):
        model.set_params(start="linear").fit(VIEWS)


def test_labels_are_learned_from_random_weights():
    labels = np.arange(len(VIEWS)) % 3
    model = TwoBranch(4, dropout=0.0, max_epochs=1, **TINY).fit(VIEWS, labels)
    assert model.start_ == "features"
    assert not hasattr(model, "start_history_")


def test_callbacks_that_need_validation_rows_want_those_of_the_user():
    model = LearnedRanking(4, callbacks=[Refinement()], max_epochs=1, **TINY)
    with pytest.raises(ValueError, match="Refinement needs validation rows"):
        model.fit(VIEWS)


@UNTRAINED
@pytest.mark.parametrize("cls", [CCAL, LearnedRanking])
def test_files_and_more_batches_continue_from_the_start_that_was_chosen(cls, tmp_path):
    model = cls(4, max_epochs=2, **TINY).fit(VIEWS)
    save(model, tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert_equal_scores(model, loaded, VIEWS)
    assert mrr(loaded, VIEWS) == mrr(model, VIEWS)
    assert loaded.start_ == model.start_ == "linear"
    assert_equal_scores(model.partial_fit(VIEWS), loaded.partial_fit(VIEWS), VIEWS)
    first = cls(4, max_epochs=2, **TINY).partial_fit(VIEWS)  # which holds no rows out
    assert_equal_scores(
        first, cls(4, start="random", max_epochs=2, **TINY).partial_fit(VIEWS), VIEWS
    )


@UNTRAINED
@pytest.mark.parametrize("epoch", [2, 6])
def test_an_interrupted_choice_resumes(epoch, tmp_path):
    class Third(Interrupt):
        """Ctrl-C in the n-th epoch of all trainings, which use copies of a callback."""

        seen = 0

        def on_batch_end(self, trainer):
            Third.seen += trainer.epoch > 0
            if Third.seen == 3 * epoch:
                raise KeyboardInterrupt

    model = CCAL(4, max_epochs=3, **TINY | {"random_state": None})
    with config_context(checkpoint=tmp_path):
        with pytest.raises(KeyboardInterrupt):
            model.set_params(callbacks=[Third(1)]).fit(VIEWS)
        resumed = model.set_params(callbacks=[]).fit(VIEWS)
    assert set(resumed.start_history_) == {"features", "view", "linear"}
    assert mrr(resumed, VIEWS) > 0.5


def test_one_scale_for_a_view_keeps_the_variances_of_its_features():
    rng = np.random.default_rng(0)
    for unit in (1.0, 1e-30, 1e30):
        X = (rng.standard_normal((200, 3)) * [1, 2, 0] + 5) * unit
        layer = Standardize(3, one_scale=True).learn([X])
        Z = layer(torch.from_numpy(X)).numpy()
        np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-4)
        np.testing.assert_allclose(np.square(Z).mean(), 1, rtol=1e-3)
        assert Z[:, 1].std() > 1.5 * Z[:, 0].std()


def test_the_temperature_of_clip_is_trained_and_bounded():
    rng = torch.Generator().manual_seed(0)
    F, G = (torch.randn(20, 3, generator=rng) for _ in range(2))
    batch = Batch({}, torch.arange(20), 1, 1, {})
    loss = small("CLIP", temperature=0.5)._objective(None, {}, None)
    assert loss.no_weight_decay == ("log_scale",)
    S = torch.nn.functional.normalize(F) @ torch.nn.functional.normalize(G).T / 0.5
    own = torch.arange(20)
    entropy = torch.nn.functional.cross_entropy
    expected = (entropy(S, own) + entropy(S.T, own)) / 2
    value = loss({"a": F, "b": G}, batch)
    torch.testing.assert_close(value, expected)
    value.backward()
    assert loss.log_scale.grad != 0
    torch.testing.assert_close(
        *(
            small("CLIP", temperature=t)._objective(None, {}, None)({"a": F, "b": G}, batch)
            for t in (1e-9, 0.01)
        )
    )
    model = small("CLIP", n_components=3).fit(VIEWS)
    assert isinstance(model, CLIP)


@pytest.mark.parametrize("start", ["view", "features"])
def test_networks_that_win_over_linear_cca_keep_nothing_of_it(start, monkeypatch):
    chosen = []

    def wins(*_):
        chosen.append(start)
        return len(chosen) == ["linear", "view", "features"].index(start) + 1

    monkeypatch.setattr("mvcca.deep._bases.started.are_clearly_larger", wins)
    model = LearnedRanking(4, max_epochs=2, learning_rate=1e-2, **TINY).fit(VIEWS)
    assert model.start_ == start
    assert model.maps_ is None
    for name, scores in model.transform(VIEWS).items():
        np.testing.assert_array_equal(scores, model.project(VIEWS, "encode")[name])
    assert model.retrieval_ranking == ("transform", "cosine")
