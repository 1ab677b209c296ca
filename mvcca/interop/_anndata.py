"""Modalities of AnnData and MuData as views, and scores written back to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mvcca.machine.warnings import warn
from mvcca.views import Views, as_views
from mvcca.views.shared_ids import unmatched


def views_of_modalities(data: Any, use: Mapping[str, str | None] | None = None) -> Views:
    """Take the modalities of a MuData object, or arrays of an AnnData object, as views.

    Parameters
    ----------
    data : MuData or AnnData
        In MuData, observations that a modality lacks are not seen in that view.
    use : mapping of str to str or None, optional
        What to take of each modality of MuData: the key of an array in its ``.obsm`` or
        ``.layers``, or None for its ``.X``; by default ``.X`` of all modalities. For AnnData, it is
        required, and maps names of views to keys in ``.obsm`` (None is ``.X``).

    Returns
    -------
    Views
        With the names of the observations as ``ids``. Sparse matrices stay sparse.

    Raises
    ------
    TypeError
        If `data` is neither.
    ValueError
        If `use` is missing or names what is not there.
    """
    if hasattr(data, "mod"):
        chosen = dict.fromkeys(data.mod) if use is None else dict(use)
        for name in chosen:
            if name not in data.mod:
                raise ValueError(f"Unknown modality {name!r}; there are {list(data.mod)}.")
        blocks = {name: array_of(data.mod[name], key, name) for name, key in chosen.items()}
        index = np.column_stack(
            [data.mod[name].obs_names.get_indexer(data.obs_names) for name in chosen]
        )
        seen = (index >= 0).any(axis=1)
        if message := unmatched({repr(name): data.mod[name].obs_names for name in chosen}):
            warn(message.partition(" Give match_ids")[0])  # MuData has matched them
        return Views(blocks, index[seen]).with_ids(np.asarray(data.obs_names, object)[seen])
    if not hasattr(data, "obsm"):
        raise TypeError(f"Expected MuData or AnnData, got {type(data).__name__}.")
    if not use:
        raise ValueError(
            "AnnData needs `use`, a mapping of view names to keys in .obsm (None is .X); its keys "
            f"are {list(data.obsm)}."
        )
    blocks = {name: array_of(data, key, name) for name, key in use.items()}
    return Views(blocks).with_ids(np.asarray(data.obs_names, object))


def write_scores(
    data: Any, estimator: Any, *, use: Mapping[str, str | None] | None = None, key: str = "X_mvcca"
) -> None:
    """Write the scores of a fitted estimator into ``.obsm``, its weights and parameters beside.

    Each modality of MuData gets ``.obsm[key]``, the scores of its observations, and, if its ``.X``
    was used, ``.varm[key]``, the weights of its variables. AnnData gets ``.obsm[f"{key}_{view}"]``
    per view. ``.uns[key]`` holds the estimator's ``repr`` and its correlations. Scanpy's functions
    take the scores as ``use_rep=key``.

    Parameters
    ----------
    data : MuData or AnnData
        Changed in place.
    estimator : fitted estimator
        Fitted on views of these names.
    use : mapping of str to str or None, optional
        As for `views_of_modalities`.
    key : str, default="X_mvcca"
        Where to write.

    Raises
    ------
    TypeError, ValueError
        As for `views_of_modalities`; or if the estimator was fitted on other views.
    """
    views = views_of_modalities(data, use)
    scores = as_views(estimator.transform(views)).in_memory()
    weights = getattr(estimator, "weights_", {})
    for name in views.names:
        of_view = data.mod[name] if hasattr(data, "mod") else data
        place = key if hasattr(data, "mod") else f"{key}_{name}"
        of_view.obsm[place] = np.asarray(_in_order_of(of_view, scores, name))
        is_x = use is None or use[name] is None
        if is_x and name in weights and len(weights[name]) == of_view.n_vars:
            of_view.varm[place] = weights[name]
    data.uns[key] = _facts(estimator)


def array_of(data: Any, key: str | None, view: str) -> Any:
    """The array with a key in ``.obsm`` or ``.layers``, or ``.X``."""
    if key is None:
        return data.X
    for place in (data.obsm, data.layers):
        if key in place:
            return place[key]
    raise ValueError(
        f"View {view!r}: no {key!r} in .obsm, {list(data.obsm)}, or .layers, {list(data.layers)}."
    )


def _in_order_of(data: Any, scores: Views, name: str) -> np.ndarray:
    """Scores of a view, one per observation of its modality."""
    ids = scores.ids_of(name)
    rows = data.obs_names.get_indexer(ids)
    ordered = np.full((data.n_obs, scores[name].shape[1]), np.nan, dtype=scores[name].dtype)
    ordered[rows] = scores[name]
    return ordered


def _facts(estimator: Any) -> dict[str, Any]:
    """What a file can hold of an estimator: its text, and its correlations if it has any."""
    spectra = ("canonical_correlations_", "expected_correlations_", "eigenvalues_")
    last = estimator[-1] if hasattr(estimator, "steps") else estimator
    found = {
        name.rstrip("_"): np.asarray(getattr(last, name)) for name in spectra if hasattr(last, name)
    }
    return {"estimator": " ".join(repr(estimator).split()), **found}
