"""The affine map of a view as a torch layer, an ONNX graph or a module of sentence-transformers."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save

from mvcca.interop._affine import affine_map, centred_map
from mvcca.machine.optional import optional
from mvcca.machine.replacing import replacing

_OPSET, _IR_VERSION = 13, 8  # of ONNX: old enough for the runtimes of some years ago


def to_linear(estimator: Any, view: str, *, weighted: bool = True) -> Any:
    """Make a ``torch.nn.Linear`` that projects rows of a view, with the means in its bias.

    Parameters
    ----------
    estimator, view, weighted
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
    torch = optional("torch", "to_linear", "'mvcca[deep]'")
    W, b = affine_map(estimator, view, weighted=weighted)
    linear = torch.nn.Linear(*W.shape, dtype=torch.float64)
    with torch.no_grad():
        linear.weight.copy_(torch.from_numpy(W.T))
        linear.bias.copy_(torch.from_numpy(b))
    return linear


def save_onnx(
    estimator: Any,
    view: str,
    path: str | os.PathLike[str],
    *,
    weighted: bool = True,
) -> None:
    """Write an ONNX graph that projects float32 rows of a view.

    Its input has the name of the view and the shape (n_rows, n_features), its output is "scores".
    The graph subtracts the means from the rows before it multiplies them, so that float32 suffices
    where means are many times the spread.

    Parameters
    ----------
    estimator, view, weighted
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
    optional("onnx", "save_onnx", "'mvcca[onnx]'")
    from onnx import TensorProto, helper, numpy_helper

    centred = centred_map(estimator, view, weighted=weighted)
    rows, scores = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n_rows", width])
        for name, width in ((view, len(centred.W)), ("scores", len(centred.offset)))
    )
    rounded = centred.center.astype(np.float32)
    residue = (rounded - centred.center) @ centred.W  # the part of the means beyond float32
    names = [f"{view} {part}" for part in ("means", "weights", "bias")]
    constants = (rounded, centred.W, centred.offset + residue)
    arrays = [
        numpy_helper.from_array(array.astype(np.float32), name)
        for name, array in zip(names, constants, strict=True)
    ]
    nodes = [
        helper.make_node("Sub", [view, names[0]], [f"{view} centred"]),
        helper.make_node("Gemm", [f"{view} centred", *names[1:]], ["scores"]),
    ]
    graph = helper.make_graph(nodes, "mvcca", [rows], [scores], arrays)
    versions = [helper.make_opsetid("", _OPSET)]
    model = helper.make_model(graph, opset_imports=versions, producer_name="mvcca")
    model.ir_version = _IR_VERSION
    with replacing(path) as file:
        file.write(model.SerializeToString())


def save_dense(
    estimator: Any,
    view: str,
    folder: str | os.PathLike[str],
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

    Neither torch nor sentence-transformers is needed to write it. The module is a single float32
    layer, as precise as embeddings need; for features whose means are many times their spread, use
    `to_linear` or `save_onnx`.

    Parameters
    ----------
    estimator, view, weighted
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
    W, b = affine_map(estimator, view, weighted=weighted)
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
