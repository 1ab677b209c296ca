"""Endings: how the outputs of networks become scores, and what estimators declare by them."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from deep_estimators import DEEP, small  # noqa: E402
from sklearn.base import clone  # noqa: E402

from mvcca import CCA, evaluate_retrieval  # noqa: E402
from mvcca.datasets import make_gaussian_views  # noqa: E402
from mvcca.deep import CCAL, EncoderCCA  # noqa: E402
from mvcca.deep.callbacks import ValidationScore  # noqa: E402
from mvcca.deep.encoders import Encoders  # noqa: E402
from mvcca.deep.endings import as_trained, linear_cca  # noqa: E402
from mvcca.deep.layers import CCALayer  # noqa: E402
from mvcca.deep.objectives import BoundLoss, ranking_loss  # noqa: E402
from mvcca.deep.samplers import ShuffledBatches  # noqa: E402
from mvcca.deep.trainer import Trainer  # noqa: E402
from mvcca.retrieval import retrieval_vectors  # noqa: E402

VIEWS = make_gaussian_views(600, n_features=(8, 7), random_state=0).views
TRAIN, TEST = VIEWS[:400], VIEWS[400:]
TRAINED = {
    "hidden_layer_sizes": (12,),
    "max_epochs": 3,
    "batch_size": 100,
    "random_state": 0,
    "reg": 1e-3,
}


def layered(**options):
    return BoundLoss(ranking_loss, symmetric=False, layer=CCALayer(3, **options))


def fitted(ending, objective=None, **parameters):
    objective = layered() if objective is None else objective
    model = EncoderCCA(3, objective=objective, ending=ending, **TRAINED | parameters)
    return model.fit(TRAIN)


def test_linear_cca_is_ours_on_the_training_representations():
    model = fitted("linear_cca")
    cca = CCA(3, reg=1e-3).fit([Z.astype(float) for _, Z in model.project(TRAIN, "encode").items()])
    np.testing.assert_allclose(
        model.canonical_correlations_, cca.canonical_correlations_, atol=1e-6
    )


def test_scores_as_trained_are_the_networks_outputs():
    model, linear = fitted("as_trained"), fitted("linear_cca")
    for name, scores in model.transform(TEST).items():
        np.testing.assert_array_equal(scores, model.project(TEST, "encode")[name])
        of_linear = linear.project(TEST, "encode")[name]  # of the same training
        np.testing.assert_array_equal(scores, of_linear)
    assert not hasattr(model, "weights_")
    assert model.retrieval_ranking == ("transform", "cosine")


def test_the_projection_of_the_layer_is_the_one_it_stored():
    seen = []

    class Kept(BoundLoss):
        def __deepcopy__(self, memo):
            seen.append(layered(memory=0.5))
            return seen[-1]

    objective = Kept(ranking_loss, symmetric=False, layer=CCALayer(3))
    model = fitted("cca_layer", objective)
    layer = seen[-1].layer.eval()
    for view, (name, H) in enumerate(model.project(TEST, "encode").items()):
        expected = layer.project(torch.from_numpy(H), view).detach().numpy()
        found = model.transform(TEST)[name]
        np.testing.assert_allclose(found, expected, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize(("ending", "projection"), [("cca_layer", "stored")])
def test_ccal_is_the_ranking_loss_with_the_same_ending(ending, projection):
    options = {"monitor": "valid_mrr", "optimizer": "adam", "weight_decay": 0.0}
    options["learning_rate"] = 1e-3
    loss = {"margin": 0.5, "symmetric": False, "memory": 0.0}
    ccal = CCAL(3, projection=projection, **loss, **TRAINED | options, start="random").fit(TRAIN)
    model = fitted(ending, layered(reg=1e-3), **options)
    for name, scores in ccal.transform(TEST).items():
        np.testing.assert_allclose(model.transform(TEST)[name], scores, atol=1e-5)


@pytest.mark.parametrize("ending", ["linear_cca", "as_trained", "cca_layer"])
def test_every_ending_is_monitored_and_ranked_as_it_declares(ending):
    model = fitted(ending, monitor="valid_mrr", validation_fraction=0.25, max_epochs=4)
    assert model.best_epoch_ == 1 + np.argmax(model.history_["valid_mrr"])
    mrr = evaluate_retrieval(TEST, estimator=model, measures="mrr").mean()["mrr"]
    plain = evaluate_retrieval(model.transform(TEST), measures="mrr").mean()["mrr"]
    assert (mrr == plain) == (ending == "as_trained")
    assert hasattr(model, "expected_correlations_") == (ending != "as_trained")
    assert np.isfinite(model.score(TEST))


ENDINGS = [
    *DEEP,
    small("CCAL", projection="stored"),
    small("CCAL", projection="stored", memory=0.5),
    small("EncoderCCA", ending="as_trained"),
    small("EncoderCCA", ending="cca_layer", objective=layered()),
]


@pytest.mark.parametrize("estimator", ENDINGS, ids=lambda model: " ".join(repr(model).split()))
def test_whatever_ends_in_cca_declares_what_cca_declares(estimator):
    labels = np.arange(len(TRAIN)) % 4
    model = clone(estimator).fit(TRAIN, labels)
    if not hasattr(model, "weights_"):  # its networks' outputs are its scores
        assert model.retrieval_ranking[0] == "transform"
        assert not hasattr(model, "expected_correlations_")
        return
    assert model.retrieval_ranking == CCA.retrieval_ranking
    k = model.n_components_
    assert model.expected_correlations_.shape == (k,)
    assert model.expected_correlations_by_pair_.shape == (2, 2, k)
    for name, scores in model.transform(TRAIN).items():
        found = model.expected_deviations_[name]
        np.testing.assert_allclose(found, scores.std(axis=0, ddof=1), rtol=1e-2)
    options = {"estimator": model, "measures": "mrr"}
    by_default = evaluate_retrieval(TEST, **options).mean()
    vectors = retrieval_vectors(model, TEST)
    assert by_default == evaluate_retrieval(vectors, measures="mrr", similarity="inner").mean()
    for weighting in ("profile-likelihood", "likelihood", "likelihood-cosine", "correlation^2"):
        assert weighting in str(evaluate_retrieval(TEST, weighting=weighting, **options))


def test_a_stored_projection_expects_the_correlations_of_all_training_rows():
    model = small("CCAL", projection="stored", n_components=3).fit(TRAIN)
    first, second = (scores for _, scores in model.transform(TRAIN).items())
    rho = [np.corrcoef(a, b)[0, 1] for a, b in zip(first.T, second.T, strict=True)]
    least = 1 / np.sqrt(len(TRAIN))  # the standard error of no correlation
    np.testing.assert_allclose(model.expected_correlations_, np.maximum(rho, least), atol=1e-4)


def test_a_model_saved_before_it_estimated_correlations_is_ranked_by_cosine():
    model = small("CCAL").fit(TRAIN)
    cosine = evaluate_retrieval(TEST, estimator=model, weighting=None).mean()
    for name in ("expected_correlations_", "expected_correlations_by_pair_"):
        delattr(model, name)
    assert evaluate_retrieval(TEST, estimator=model).mean() == cosine
    with pytest.raises(ValueError, match="has no expected_correlations_"):
        evaluate_retrieval(TEST, estimator=model, weighting="profile-likelihood")


class RowsSeen(torch.nn.Linear):
    """Counts the rows that it maps in evaluation mode."""

    count = 0

    def forward(self, rows):
        if not self.training:
            RowsSeen.count += len(rows)
        return super().forward(rows)


@pytest.mark.parametrize("ending", ["linear_cca", "as_trained"])
def test_only_endings_that_learn_read_training_rows_to_monitor(ending):
    encoders = {name: RowsSeen(width, 3) for name, width in TRAIN.widths.items()}
    RowsSeen.count = 0
    Trainer(
        Encoders(encoders),
        layered(),
        torch.optim.Adam,
        sampler=ShuffledBatches(100),
        monitor="valid_mrr",
        callbacks=[
            ValidationScore("mrr", linear_cca(3, 1e-3) if ending == "linear_cca" else as_trained())
        ],
    ).train(TRAIN, 2, TEST)
    read = RowsSeen.count / (2 * 2)  # in an epoch, of a view
    assert read == 2 * len(TEST) + (len(TRAIN) if ending == "linear_cca" else 0)


def test_objectives_without_a_layer_have_no_stored_projection():
    def loss(scores, batch):  # noqa: ARG001, the signature of objectives
        first, second = scores.values()
        return (first - second).square().mean()

    with pytest.raises(ValueError, match=r"not a module that holds one.*ranking_loss"):
        fitted("cca_layer", loss)
    with pytest.raises(ValueError, match="ending"):
        fitted("stored", loss)
