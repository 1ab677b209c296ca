"""Deep CCA."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Generator

from mvcca.deep._bases.cca_scores import CCAScores
from mvcca.deep._bases.estimator import Widths
from mvcca.deep._bases.parameters import NOT_NEGATIVE, parameter
from mvcca.deep._bases.started import StartedNetworks
from mvcca.deep._losses.trace_norm import check_enough_rows
from mvcca.deep.encoders import Encoders
from mvcca.deep.objectives import TraceNormLoss
from mvcca.deep.trainer import Objective
from mvcca.problem import reg_of_names


class DCCA(CCAScores, StartedNetworks):
    r"""Deep canonical correlation analysis of two or more views.

    Trains one network f_p per view to maximize the sum of canonical correlations of the networks'
    outputs on each batch [1]_,

    .. math::

        \max \; \sum_{p<q} \sum_i s_i(T_{pq}), \qquad
        T_{pq} = S_p^{-1/2} Σ_{pq} S_q^{-1/2}, \qquad S_p = Σ_{pp} + r_p v_p I,

    where Σ are covariances of the outputs, s_i singular values, and v_p = tr(Σ_pp) / k the mean
    variance of view p. (Some implementations maximize Σ s_i², or use the smallest s_i.) After
    training, linear CCA (`mvcca.MVCCA` for more than two views) is fitted in float64 to the outputs
    for all training rows, and gives the scores of the model.

    Parameters and attributes that are not listed here are those of `mvcca.deep.bases.CCAScores` and
    `mvcca.deep.bases.StartedNetworks`.

    Parameters
    ----------
    final_reg : float or mapping of str to float, optional
        Ridge of the final linear CCA, in the same units; by default `reg`.
    reg : float or mapping of str to float, default=1e-4
        Ridge r_p in units of the mean variance v_p of the view's network outputs, in the loss and
        in the final linear CCA, so that rescaling the outputs changes neither. A published absolute
        ridge is r_p v_p; the default networks end in batch norm, so that v_p is 1.
    batch_size : int or "auto", default="auto"
        Rows per batch; all rows if there are fewer. Use at least 8 rows per component. "auto" is
        128 for fewer than 10,000 training rows and 750 for more, or that minimum.
    learning_rate : float, mapping of str to float or "auto", default="auto"
        Learning rate of the optimizer, for all views or by view. "auto" is 3e-3 for fewer than
        10,000 training rows and 1e-3 for more.

    See Also
    --------
    DSDCCA : Deep CCA whose last layer is rescaled for each row.
    mvcca.KCCA : Kernel CCA: nonlinear, without networks to choose.

    References
    ----------
    .. [1] Andrew, Arora, Bilmes and Livescu, "Deep Canonical Correlation Analysis", ICML 2013.

    Examples
    --------
    >>> from mvcca import CCA
    >>> from mvcca.datasets import make_nonlinear_views
    >>> from mvcca.deep import DCCA
    >>> views = make_nonlinear_views(400, random_state=0).views
    >>> model = DCCA(1, hidden_layer_sizes=(32,), batch_size=100, max_epochs=40, random_state=0)
    >>> CCA(1).fit(views).score(views) < 0.1, model.fit(views).score(views) > 0.95
    (True, True)
    """

    final_reg: float | Mapping[str, float] | None = parameter(None, NOT_NEGATIVE, Mapping, None)
    learning_rate: float | str | Mapping[str, float] = "auto"

    def _final_reg(self) -> float | dict[str, float]:
        reg = self.reg if self.final_reg is None else self.final_reg
        return dict(reg) if isinstance(reg, Mapping) else float(reg)

    def _n_scores(self) -> int:
        check_enough_rows(min(self._setting("batch_size"), self._n_rows), self.n_components)
        return super()._n_scores()

    def _objective(self, encoders: Encoders, widths: Widths, generator: Generator) -> Objective:
        return TraceNormLoss(reg_of_names(self.reg, encoders.names))
