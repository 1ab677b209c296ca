"""Order of the examples, from simple to special, and their style."""

import warnings
from pathlib import Path

ORDER = {
    "first_steps": [
        "cca_two_views",
        "views",
        "compare",
        "hyperparameters",
        "grid_search",
        "pipelines",
    ],
    "retrieval": ["joint_queries", "likelihood", "hubs", "matches", "vector_store", "alignment"],
    "labels": [
        "unpaired_labels",
        "word_vectors",
        "three_views",
        "supervised",
        "zero_shot",
        "within_constraint",
    ],
    "kernel_and_deep": [
        "kernel",
        "kernel_retrieval",
        "deep",
        "deep_correlation",
        "deep_ranking",
        "deep_pairs",
        "deep_labels",
    ],
    "large_data": ["batches", "streaming"],
    "inspection": [
        "study",
        "permutation_test",
        "displays",
        "samples",
        "arrows",
        "correlation_circle",
        "circos",
        "network",
        "clustered_heatmap",
        "explained_variance",
        "auroc",
    ],
}


def folder(path: str) -> int:
    """Place of a folder of examples."""
    return list(ORDER).index(Path(path).name)


def example(filename: str) -> int:
    """Place of an example."""
    return [name for names in ORDER.values() for name in names].index(
        Path(filename).stem.removeprefix("plot_")
    )


def package_style(_gallery_conf, _file):
    """Reset matplotlib before each example, to the colours and axes of the package's displays."""
    import matplotlib.pyplot as plt

    from mvcca.plotting.style import COLORS, FAINT, SEQUENTIAL

    warnings.formatwarning = lambda message, category, *_args, **_: (
        f"{category.__name__}: {message}\n"  # without the path of the builder
    )
    plt.rcdefaults()
    plt.rcParams.update(
        {
            "axes.prop_cycle": plt.cycler(color=COLORS),
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.axisbelow": True,
            "grid.color": FAINT,
            "image.cmap": SEQUENTIAL,
            "legend.frameon": False,
        }
    )
