"""The affine map of a view as a torch layer, an ONNX graph or a module of sentence-transformers."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save

from mvcca._replacing import replacing
from mvcca.interop._affine import affine_map

_OPSET, _IR_VERSION = 13, 8  # of ONNX: old enough for the runtimes of some years ago


def to_linear(
    estimator: Any, view: str, n_features: int | None = None, *, weighted: bool = True
) -> Any:
    """Make a ``torch.nn.Linear`` that projects rows of a view, with the means in its bias.

    Parameters
    ----------
    estimator, view, n_features, weighted
        As for `affine_map`.

    Returns
    -------
    torch.nn.Linear
        In float64; ``.float()`` converts it.

    Raises
    ------
    ImportError
        If torch is not installed.
    ValueError
        As for `affine_map`.
    """
    try:
        import torch
    except ImportError as error:
        raise ImportError("to_linear needs torch: pip install 'mvcca[deep]'") from error
    W, b = affine_map(estimator, view, n_features, weighted=weighted)
    linear = torch.nn.Linear(*W.shape, dtype=torch.float64)
    with torch.no_grad():
        linear.weight.copy_(torch.from_numpy(W.T))
        linear.bias.copy_(torch.from_numpy(b))
    return linear


def save_onnx(
    estimator: Any,
    view: str,
    path: str | os.PathLike[str],
    n_features: int | None = None,
    *,
    weighted: bool = True,
) -> None:
    """Write an ONNX graph that projects float32 rows of a view.

    Its input has the name of the view and the shape (n_rows, n_features), its output is "scores".

    Parameters
    ----------
    estimator, view, n_features, weighted
        As for `affine_map`.
    path : path
        The file, which is replaced if it exists.

    Raises
    ------
    ImportError
        If onnx is not installed.
    ValueError
        As for `affine_map`.
    OSError
        If the file cannot be written.
    """
    try:
        from onnx import TensorProto, helper, numpy_helper
    except ImportError as error:
        raise ImportError("save_onnx needs onnx: pip install 'mvcca[onnx]'") from error
    W, b = affine_map(estimator, view, n_features, weighted=weighted)
    rows, scores = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n_rows", width])
        for name, width in ((view, len(W)), ("scores", len(b)))
    )
    arrays = [
        numpy_helper.from_array(array.astype(np.float32), name)
        for name, array in (("weights", W), ("bias", b))
    ]
    node = helper.make_node("Gemm", [view, "weights", "bias"], ["scores"])
    graph = helper.make_graph([node], "mvcca", [rows], [scores], arrays)
    versions = [helper.make_opsetid("", _OPSET)]
    model = helper.make_model(graph, opset_imports=versions, producer_name="mvcca")
    model.ir_version = _IR_VERSION
    with replacing(path) as file:
        file.write(model.SerializeToString())


def save_dense(
    estimator: Any,
    view: str,
    folder: str | os.PathLike[str],
    n_features: int | None = None,
    *,
    weighted: bool = True,
) -> None:
    """Write a ``Dense`` module of sentence-transformers that projects embeddings of a view.

    Put behind the encoder whose embeddings the estimator was fitted on, it makes one encoder into
    the shared space::

        from sentence_transformers import SentenceTransformer
        from sentence_transformers.models import Dense

        encoder = SentenceTransformer("all-MiniLM-L6-v2")
        encoder.append(Dense.load("minilm-to-shared"))

    Neither torch nor sentence-transformers is needed to write it.

    Parameters
    ----------
    estimator, view, n_features, weighted
        As for `affine_map`.
    folder : path
        Gets ``config.json`` and ``model.safetensors``; it is made if it does not exist.

    Raises
    ------
    ValueError
        As for `affine_map`.
    OSError
        If the files cannot be written.
    """
    W, b = affine_map(estimator, view, n_features, weighted=weighted)
    config = {
        "in_features": len(W),
        "out_features": len(b),
        "bias": True,
        "activation_function": "torch.nn.modules.linear.Identity",
    }
    weights = np.ascontiguousarray(W.T, dtype=np.float32)
    tensors = {"linear.weight": weights, "linear.bias": b.astype(np.float32)}
    Path(folder).mkdir(parents=True, exist_ok=True)
    with replacing(Path(folder, "model.safetensors")) as file:
        file.write(save(tensors))
    with replacing(Path(folder, "config.json")) as file:
        file.write(json.dumps(config, indent=2).encode())
