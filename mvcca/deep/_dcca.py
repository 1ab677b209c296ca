"""Deep CCA."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from mvcca.deep._estimator import DeepEstimator
from mvcca.deep.encoders import Encoders
from mvcca.deep.objectives import TraceNormLoss
from mvcca.deep.trainer import Objective
from mvcca.problem import reg_of_names


class DCCA(DeepEstimator):
    """Deep canonical correlation analysis of two or more views.

    Finds one network f_p per view such that the views of an object correlate [1]_,

        max Σ_{p<q} Σ_i s_i(T_pq),   T_pq = S_p^(-1/2) Σ_pq S_q^(-1/2),   S_p = Σ_pp + r_p v_p I,

    with the covariances Σ of the networks' outputs over a batch and their mean variances
    v_p = tr(Σ_pp) / k: the sum of canonical correlations.
    (Some code maximises Σ s_i², or takes the smallest s_i.) Once trained, linear CCA (`MVCCA` of
    more than two views) is fitted in float64 to what the networks make of all training rows, and
    its scores are the model's.

    Parameters
    ----------
    n_components : int, default=2
        Dimension of the shared space, and width of the networks' output.
    hidden_layer_sizes : sequence of int, or mapping of str to such, default=(800, 800)
        Hidden layers of each view's network, linear → batch norm → ReLU each; the output is batch
        normalised, too. Empty for a linear network.
    encoders : mapping of str to Module, or sequence of Module, optional
        Networks of your own, by view or in order of the views, in place of those: any
        `torch.nn.Module` from rows to (n_rows, n_scores). Copies of them are trained. With other
        hidden_layer_sizes than the default, which would be ignored, `fit` raises an error.
    reg : float or mapping of str to float, default=1e-4
        Ridge r_p in units of the mean variance v_p of the view's network outputs, both in the loss
        and in the linear CCA, so that rescaling the outputs changes neither. A published absolute
        ridge is r_p v_p; with batch norm at the output, as by default, v_p is 1.
    batch_size : int, default=750
        Rows of a batch; all, if there are fewer. Fewer than 8 rows per component are too few.
    max_epochs : int, default=100
        Passes over the rows, at most.
    optimizer : {"rmsprop", "adam"} or callable, default="rmsprop"
        Or a class of `torch.optim`, or anything called like one.
    learning_rate : float, default=1e-3
    weight_decay : float, default=1e-5
    validation_fraction : float, optional
        Share of the rows that are set aside for validation, unless `fit` is given `X_val`. With
        validation rows the model has the weights of the best epoch by `monitor`.
    patience : int, optional
        Stop after as many epochs without a better one by `monitor`. It needs validation rows.
    monitor : {"correlation", "loss"}, default="correlation"
        What is compared across epochs on the validation rows: their total correlation under linear
        CCA of the training rows, as the model would have it (higher is better), or the loss (lower
        is better). The scale of a loss may drift in training, and its lowest value may be that of
        the first epoch.
    callbacks : sequence of `mvcca.deep.callbacks.Callback`, default=()
        Copies of them are called.
    mixed_precision : bool, default=False
        Run the networks in bfloat16 where torch deems it safe.
    device : str, default="auto"
        Where to train: "cpu", "cuda", "cuda:1", "mps"; "auto" is a GPU if torch finds one.
    random_state : int, RandomState or None, default=None
        Seed of initial weights, batches and validation rows. Torch's and NumPy's global generators
        are left as they are.

    Attributes
    ----------
    encoders_ : dict of str to Module
        The trained networks, on the CPU.
    history_ : dict of str to ndarray, shape (n_epochs,)
        A table, such as ``pandas.DataFrame(model.history_)``: epoch, loss, learning_rate, skipped
        (steps that were not finite), seconds, and what callbacks measure; with validation rows also
        valid_loss and, for ``monitor="correlation"``, valid_total_correlation.
    best_epoch_ : int
        The epoch whose weights these are.
    weights_ : dict of str to ndarray, shape (n_scores, n_components_)
        Of the linear CCA.
        A dict: unpack it with ``weights_.values()``, since iterating over it gives names.
    means_ : dict of str to ndarray, shape (n_scores,)
        Training means of the networks' outputs.
    canonical_correlations_ : ndarray, shape (n_components_,)
        ρ of the training rows, decreasing, of two views. They flatter: see `score`.
    eigenvalues_ : ndarray, shape (n_components_,)
        λ = 1 + ρ, as in `MVCCA`.
    n_components_ : int
        Components found.
    view_names_ : tuple of str
        The views, in order.
    n_features_in_ : int
        Number of features of X, over all its views.

    See Also
    --------
    DSDCCA : The last layer scaled anew for every row.
    mvcca.KCCA : No networks, and no choice of them.

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

    _whitens_batches = True

    def _objective(
        self, encoders: Encoders, widths: Mapping[str, int], generator: torch.Generator
    ) -> Objective:
        return TraceNormLoss(reg_of_names(self.reg, encoders.names))
