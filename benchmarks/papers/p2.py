"""Wang, He, Kang, Xiang and Pan, "Image-Text Cross-Modal Retrieval via Modality-Specific Feature
Learning", ICMR 2015: MSDS.
"""

from __future__ import annotations

from typing import Any

from benchmarks.papers import solvers as own
from benchmarks.papers.problems import CAPTIONS, multi30k
from benchmarks.papers.protocol import Missing, Problem, Setting, Solver, Table, Training

_RANKS = (1, 2, 4, 10, 20, 40, 100, 200, 500)
_RATES = (1e-4, 3e-4, 1e-3, 3e-3)


def _both_words(setting: Setting, seed: int) -> Any:
    """MSDS with a network of words for both languages; the paper's has one of images."""
    import torch

    from mvcca.deep import MSDS
    from mvcca.deep.encoders import WCNN

    torch.manual_seed(seed)
    nets = {
        name: torch.nn.Sequential(WCNN(), torch.nn.Linear(300, setting["n_components"]))
        for name in ("en", "de")
    }
    return MSDS(**setting, encoders=nets, random_state=seed)


def solvers(problem: Problem) -> list[Solver]:
    """Linear methods, correspondence autoencoders, and MSDS with and without words."""
    has_words = problem.name.startswith("multi30k")
    msds: Setting = {
        "n_components": 300,
        "query": "de" if has_words else "cap1",  # the text of the paper
        "optimizer": "adam",
        "weight_decay": 0.0,
        "learning_rate": 1e-3,
        "gamma": 1.0,
        "n_negatives": 4,
    }
    grid = {"learning_rate": _RATES, "gamma": (1.0, 10.0), "n_negatives": (4, 50)}
    coder = {"n_components": 128, "hidden_layer_sizes": [512], "correspondence": 0.8}
    of_coder = {"correspondence": (0.2, 0.5, 0.8, 0.95), "learning_rate": _RATES[1:]}
    found = [
        own.cca(200, (50, 100, 200)),
        own.pls((200, 20, 50, 100, 150, 300)),
        own.network("Corr-AE", "CorrAE", coder, of_coder),
        own.network("Cross-Corr-AE", "CrossCorrAE", coder | {"correspondence": 0.2}, of_coder),
        own.network("MSDS v1", "MSDS", msds, grid),
    ]
    if has_words:
        found.append(own.network("MSDS v2", "MSDS", msds | {"tokens": "en"}, grid, words=("en",)))
        found.append(
            Solver(
                "MSDS",
                _both_words,
                msds | {"standardize": False},
                grid,
                is_deep=True,
                words=("en", "de"),
                note="words of both, for images",
            )
        )
    return found


def _table(number: str, title: str, published: dict[str, str]) -> Table:
    return Table(
        "p2",
        number,
        title,
        [multi30k(10_000), CAPTIONS],
        solvers,
        (*(f"r@{k}" for k in _RANKS), "mrr"),
        "mrr",
        rankings=("euclidean", "cosine", "default"),
        training=Training(max_epochs=40, patience=6),
        n_trials=6,
        n_seeds=3,
        reference="CCA",
        published=published,
        remark="The paper ranks linear methods and autoencoders by Euclidean distance and MSDS by "
        "cosine; here each has all rankings. Sentences of another language stand for images.",
    )


TABLES = [
    _table(
        "table a",
        "Texts and images of IAPR TC-12 (a, b): recall at k",
        {
            "CCA": "text to image R@1 .072, R@10 .169, R@100 .350",
            "PLS": "R@1 .168, R@10 .505, R@100 .829",
            "Corr-AE": "R@1 .029, R@10 .141, R@100 .473",
            "MSDS v1": "R@1 .175, R@10 .559, R@100 .917",
            "MSDS v2": "R@1 .186, R@10 .568, R@100 .925",
            "MSDS": "R@1 .256, R@100 .921",
        },
    )
]
MISSING = [
    Missing("p2", "table c", "texts and images of Attribute Discovery cannot be had here"),
    Missing("p2", "table d", "texts and images of Attribute Discovery cannot be had here"),
    Missing("p2", "table e", "texts and images of MSR-Bing cannot be had here"),
    Missing("p2", "table f", "texts and images of MSR-Bing cannot be had here"),
]
