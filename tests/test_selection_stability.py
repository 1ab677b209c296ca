"""How often halves select features, judged by a count written out, and by planted features."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mvcca import CCA, RGCCA, PerView, Views
from mvcca.inspection import selection_stability

N, P, Q, TRUE = 100, 60, 80, 8
rng = np.random.default_rng(0)
z = rng.normal(size=(N, 1))
X, Y = rng.normal(size=(N, P)), rng.normal(size=(N, Q))
X[:, :TRUE] = 0.7 * z + 0.7 * X[:, :TRUE]
Y[:, :TRUE] = -0.7 * z + 0.7 * Y[:, :TRUE]
FRAMES = Views(
    {
        "genes": pd.DataFrame(X, columns=[f"g{i}" for i in range(P)]),
        "lipids": pd.DataFrame(Y, columns=[f"l{i}" for i in range(Q)]),
    }
)


def test_frequencies_are_counts_over_both_halves_of_every_split():
    found = selection_stability(RGCCA(n_features=TRUE), FRAMES, n_pairs=4, random_state=3)
    counts, scores = dict.fromkeys(FRAMES["genes"].columns, 0), []
    for halves in ShuffleSplit(4, test_size=0.5, random_state=np.random.RandomState(3)).split(X):
        for own, other in (halves, halves[::-1]):
            model = RGCCA(n_features=TRUE).fit(FRAMES[own])
            scores.append(model.score(FRAMES[other]))
            for name in model.selected_["genes"][0]:
                counts[name] += 1
    table = found.to_frame()
    genes = table[table["view"] == "genes"]
    expected = {name: count / 8 for name, count in counts.items() if count}
    assert dict(zip(genes["feature"], genes["frequency"], strict=True)) == expected
    np.testing.assert_allclose(found.scores, scores)
    # The bound q² / ((2π - 1) p), of the features that more than half select.
    often = genes[genes["frequency"] > 0.5]
    np.testing.assert_allclose(often["bound"], TRUE**2 / ((2 * often["frequency"] - 1) * P))
    assert genes["bound"].notna().sum() == len(often)
    assert (genes["frequency"].diff().dropna() <= 0).all()


def test_planted_features_are_frequent_with_one_sign_and_others_are_not():
    found = selection_stability(RGCCA(n_features=TRUE), FRAMES, n_pairs=10, random_state=0)
    for view, letter in (("genes", "g"), ("lipids", "l")):
        own = [one for one in found.features if one.view == view]
        frequent = {one.feature for one in own if one.frequency > 0.5}
        assert frequent == {f"{letter}{i}" for i in range(TRUE)}
        assert all(one.sign_agreement == 1 for one in own if one.feature in frequent)
        assert sum(one.weight != 0 for one in own) == TRUE
        sign = {"genes": 1, "lipids": -1}[view]
        assert all(sign * one.weight > 0 for one in own if one.feature in frequent)


def test_signs_of_whole_components_do_not_count():
    class Flipping(RGCCA):
        """Every second half has all weights turned round."""

        def fit(self, X, y=None):
            super().fit(X, y)
            if len(X) < N and rng.random() < 0.5:
                for W in (*self.weights_.values(), *self.sparse_weights_.values()):
                    W *= -1
            return self

    plain = selection_stability(RGCCA(n_features=TRUE), FRAMES, n_pairs=5, random_state=0)
    found = selection_stability(Flipping(n_features=TRUE), FRAMES, n_pairs=5, random_state=0)
    assert str(found) == str(plain)


def test_it_takes_pipelines_matrices_and_several_components():
    model = make_pipeline(PerView(StandardScaler()), RGCCA(2, n_features=5))
    found = selection_stability(model, FRAMES, n_pairs=2, random_state=0)
    assert {(one.view, one.component) for one in found.features} == {
        (view, k) for view in FRAMES.names for k in (1, 2)
    }
    lone = selection_stability(RGCCA(n_features=5), X, Y, n_pairs=2, random_state=0)
    assert {one.view for one in lone.features} == {"X", "y"}


def test_the_result_is_a_table_a_plot_and_a_page(tmp_path):
    found = selection_stability(RGCCA(n_features=5), FRAMES, n_pairs=2, random_state=0)
    ax = found.plot()
    assert len(ax.patches) == len(ax.get_yticklabels()) > 4
    assert list(found.figures()) == ["genes, component 1", "lipids, component 1"]
    found.save_page(tmp_path / "selection.html")
    page = (tmp_path / "selection.html").read_text()
    assert "all rows select 5 features" in page
    assert "Score of each half by the model of the other" in page


def test_bad_input_says_what_to_do():
    with pytest.raises(TypeError, match=r"takes estimators that have selected_ .* CCA has none"):
        selection_stability(CCA(reg=1.0), FRAMES)
    with pytest.raises(ValueError, match="n_pairs to be a whole number from 1 up, got 0"):
        selection_stability(RGCCA(), FRAMES, n_pairs=0)
    with pytest.raises(ValueError, match="Halves need 4 rows or more, got 3"):
        selection_stability(RGCCA(), FRAMES[:3])
