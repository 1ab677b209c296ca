"""Public names that were moved or removed, and what to use instead, for one release.

The table has the names that rooms no longer offer, of "Moved and removed names" in the changelog.
"""

from __future__ import annotations

import sys
from opcode import opmap

INSTEAD = {
    "mvcca.base.forget": "base.inputs.forget",
    "mvcca.blocks.Identified": "blocks.sources.FileRows",
    "mvcca.blocks.cells_of_text": "blocks.sources.read_cells",
    "mvcca.blocks.open_or_read": "blocks.read_table",
    "mvcca.blocks.path_and_key": "blocks.sources.path_and_key",
    "mvcca.blocks.read_array": "blocks.sources.read_whole(file).matrix",
    "mvcca.blocks.read_identified": "blocks.read_table",
    "mvcca.blocks.read_texts": "blocks.read_table",
    "mvcca.comparison.Difference": "ComparisonResult.is_worse and ComparisonResult.standing",
    "mvcca.deep.encoders.n_parameters": "sum(p.numel() for p in network.parameters())",
    "mvcca.deep.encoders.widened": "sum(p.numel() for p in network.parameters())",
    "mvcca.deep.endings.AsTrained": "deep.endings.as_trained",
    "mvcca.deep.endings.LinearCCA": "deep.endings.linear_cca",
    "mvcca.deep.endings.LinearSolution": "deep.endings.Ending",
    "mvcca.deep.endings.StoredCCA": "deep.endings.STORED_CCA",
    "mvcca.deep.functional.trace_norm_by_autograd": "deep.functional.trace_norm",
    "mvcca.deep.layers.GradientReversal": "deep.functional.reverse_gradient",
    "mvcca.deep.objectives.ACMRLoss": "deep.ACMR",
    "mvcca.deep.objectives.BimodalLoss": "deep.CMDN",
    "mvcca.deep.objectives.CCLLoss": "deep.CCL",
    "mvcca.deep.objectives.CorrNetLoss": "deep.CorrNet",
    "mvcca.deep.objectives.DeViSELoss": "deep.functional.devise",
    "mvcca.deep.objectives.GateLoss": "deep.functional.expected_open_gates",
    "mvcca.deep.objectives.PosteriorLoss": "deep.objectives.LabelLoss",
    "mvcca.deep.objectives.StructureLoss": "deep.functional.structure_preserving",
    "mvcca.deep.samplers.LabelPairs": "deep.samplers.ShuffledBatches",
    "mvcca.deep.steps.AdversarialStep": "deep.functional.reverse_gradient",
    "mvcca.deep.steps.Step": "Trainer(encoders, objective, optimizer, learning_rates=)",
    "mvcca.inspection.pairwise_associations": "inspection.associations",
    "mvcca.inspection.pairwise_correlations": "inspection.component_correlations",
    "mvcca.inspection.variable_correlations": "inspection.loadings",
    "mvcca.interop.alignment.Step": "AlignmentStep",
    "mvcca.interop.views_of_table": 'Views({"image": table.select(["image"])})',
    "mvcca.linear.CovarianceCCA": "a StatisticEstimator with your problem",
    "mvcca.machine.Config": "machine.config.Config",
    "mvcca.measures.NoRelevant": "measures.lists.NoRelevant",
    "mvcca.measures.Normalizer": "measures.lists.Normalizer",
    "mvcca.measures.Ties": "measures.lists.Ties",
    "mvcca.measures.average_precision_of_lists": "measures.lists.average_precision",
    "mvcca.measures.in_order": "numpy.lexsort((items, -scores), axis=1)",
    "mvcca.measures.merge_parallel": "retrieval.parallel_rows.merge_parallel",
    "mvcca.measures.ndcg_of_lists": "measures.lists.ndcg",
    "mvcca.measures.ranked": "numpy.take_along_axis with descending_order(scores, k)",
    "mvcca.measures.relevant_ranks_of_lists": "measures.lists.relevant_ranks",
    "mvcca.measures.weighted_average_precision_of_lists": (
        "measures.lists.weighted_average_precision"
    ),
    "mvcca.model_selection.AUTOMATIC": "model_selection.spaces",
    "mvcca.model_selection.Goal": "model_selection.goals.Goal",
    "mvcca.model_selection.SEARCHED": "model_selection.spaces",
    "mvcca.model_selection.choice_of": "model_selection.Choice.of",
    "mvcca.model_selection.decay_of_variances": "model_selection.spectrum_decay",
    "mvcca.model_selection.goal_of": "model_selection.Choice.of(estimator).goal",
    "mvcca.model_selection.numbers_of_components": "model_selection.Space.numbers_of_components",
    "mvcca.model_selection.space_of": "model_selection.Space.offered_by",
    "mvcca.plotting.CategoryMarginsDisplay": "plt.imshow(model.category_margins_)",
    "mvcca.plotting.CircosDisplay": 'plotting.AssociationsDisplay with kind="circos"',
    "mvcca.plotting.ClusteredHeatmapDisplay": 'plotting.AssociationsDisplay with kind="heatmap"',
    "mvcca.plotting.ExplainedVarianceDisplay": (
        "pandas.DataFrame(explained_variance(model, rows)).plot.bar()"
    ),
    "mvcca.plotting.GridSearchDisplay": (
        'plt.imshow(search.cv_results_["mean_test_score"].reshape(n_rows, -1))'
    ),
    "mvcca.plotting.LearningCurveDisplay": (
        'pandas.DataFrame(model.history_).plot("epoch", ["loss", "valid_loss"])'
    ),
    "mvcca.plotting.NetworkDisplay": "plotting.AssociationsDisplay",
    "mvcca.plotting.ScalesDisplay": "plt.imshow(model.scales(rows)[view].std(axis=0))",
    "mvcca.plotting.ScoresDisplay": "plotting.Display",
    "mvcca.plotting.ScreeDisplay": 'permutation_test(views).plot(figure="Components")',
    "mvcca.plotting.ValidationCurveDisplay": "sklearn.model_selection.ValidationCurveDisplay",
    "mvcca.plotting.VariatesDisplay": 'plt.scatter(scores["left"][:, 0], scores["right"][:, 0])',
    "mvcca.plotting.ViewPairsDisplay": 'plt.imshow(table.to_frame()["r@10"].unstack())',
    "mvcca.problem.Absolute": "problem.ridge",
    "mvcca.problem.CentredRows": "problem.centred_rows.CentredRows",
    "mvcca.problem.CrossCovariance": "problem.cross_covariance.CrossCovariance",
    "mvcca.problem.Exactness": "problem.precision",
    "mvcca.problem.Expected": "problem.expected",
    "mvcca.problem.KnownRank": "problem.precision",
    "mvcca.problem.LARGEST_CORRELATION": "problem.expected",
    "mvcca.problem.Overfit": "problem.ProductPath(rows, refuses=True).solve(reg, k)",
    "mvcca.problem.Reg": "problem.ridge",
    "mvcca.problem.RidgePath": "problem.MatrixPath",
    "mvcca.problem.SHRINKAGES": "problem.shrinkage",
    "mvcca.problem.SampleBias": "problem.bias.SampleBias",
    "mvcca.problem.SharedRows": "problem.shared_rows.SharedRows",
    "mvcca.problem.Shrinkage": "problem.ridge",
    "mvcca.problem.Shrunk": "problem.shrinkage",
    "mvcca.problem.Spectrum": "problem.expected",
    "mvcca.problem.WIDE": "machine.memory.WIDE",
    "mvcca.problem.by_products": "problem.route",
    "mvcca.problem.bytes_of_matrices": "problem.route",
    "mvcca.problem.canonical": "problem.whitened",
    "mvcca.problem.canonical_of_covariances": "problem.whitened",
    "mvcca.problem.check_variance": "problem.rows",
    "mvcca.problem.component_weights": "problem.expected",
    "mvcca.problem.components_to_search": "problem.route",
    "mvcca.problem.correlation_shrinkage": "problem.shrinkage",
    "mvcca.problem.exactness_given": "Estimate.of(moments, confounds=name)",
    "mvcca.problem.expected_correlation": "problem.expected",
    "mvcca.problem.expected_covariances": "problem.expected",
    "mvcca.problem.expected_moments": "problem.expected",
    "mvcca.problem.given": "Estimate.of(moments, confounds=name)",
    "mvcca.problem.in_dual_of_kernels": "problem.dual.in_dual_of_kernels",
    "mvcca.problem.least_left": "problem.confounds",
    "mvcca.problem.linalg": "problem.directions, problem.whitener",
    "mvcca.problem.mean_and_variance": "problem.rows",
    "mvcca.problem.profile_vectors": "problem.expected",
    "mvcca.problem.reg_of_names": "problem.ridge",
    "mvcca.problem.regression_on": "problem.confounds",
    "mvcca.problem.shrinkages": "problem.shrinkage",
    "mvcca.problem.solve_by_products": "problem.ProductPath(rows, refuses=True).solve(reg, k)",
    "mvcca.problem.squares_about": "problem.confounds.second_degree",
    "mvcca.problem.steps_of_products": "problem.route",
    "mvcca.problem.suits_float32": "problem.precision",
    "mvcca.problem.warn_of_fewer_components": "problem.maps.warn_of_fewer_components",
    "mvcca.retrieval.InvertedSoftmax": "retrieval.CSLS",
    "mvcca.retrieval.MutualProximity": "retrieval.CSLS",
    "mvcca.retrieval.QBNorm": "retrieval.CSLS",
    "mvcca.retrieval.joint_scores": "evaluate_retrieval(directions=)",
    "mvcca.retrieval.recall_curve": "evaluate_retrieval",
    "mvcca.similarity.SharedSubsets": "similarity.LabelGram",
    "mvcca.similarity.similarities_within": "similarity.LabelKernel",
    "mvcca.similarity.similarity_function": "similarity.LabelKernel",
    "mvcca.statistics.DigitsLost": "statistics.digits_lost.DigitsLost",
    "mvcca.statistics.FeatureMoments": "linear.cell_rows.FeatureMoments",
    "mvcca.statistics.LabelFeatureSums": "statistics.label_sums_by_feature.LabelFeatureSums",
    "mvcca.statistics.PairCovariance": "statistics.pair_covariance",
    "mvcca.statistics.PreparedRows": "linear.cell_rows.PreparedRows",
    "mvcca.statistics.ROUNDING": "statistics.moments",
    "mvcca.statistics.Recovered": "statistics.holes.Recovered",
    "mvcca.statistics.ScaledFeatures": "linear.cell_rows.PreparedRows",
    "mvcca.statistics.StandardizedRows": "linear.cell_rows.StandardizedRows",
    "mvcca.statistics.filled": "statistics.holes.filled",
    "mvcca.statistics.moments_of_block": "statistics.moments",
    "mvcca.statistics.scaled_block": "statistics.pair_covariance",
    "mvcca.views.files.IdentifiedRows": "blocks.sources.FileRows",
    "mvcca.views.files.SubjectTable": "blocks.sources.FileRows",
    "mvcca.views.files.Table": "blocks.sources.FileRows",
    "mvcca.views.files.matched": "views.files.common_rows",
    "mvcca.views.files.open_all": "views.files.open_tables",
    "mvcca.views.files.open_identified": "views.files.open_tables",
    "mvcca.views.files.open_rows": "views.files.open_tables",
    "mvcca.views.files.open_view": "views.files.open_tables",
    "mvcca.views.files.read_matched_views": "views.files.read_views",
    "mvcca.views.files.read_table": "blocks.read_table",
}


def missing(package: str, name: str) -> AttributeError | ImportError:
    """The error for a name that a package lacks, for its ``__getattr__`` to raise."""
    text = f"module {package!r} has no attribute {name!r}"
    if (instead := INSTEAD.get(f"{package}.{name}")) is None:
        return AttributeError(text)
    text += f" any more; use {instead} (see the changelog)"
    # `from package import name` would replace the text of an AttributeError by its own.
    asker = sys._getframe(2)
    is_import = asker.f_globals.get("__name__") == "importlib._bootstrap" or (
        asker.f_code.co_code[asker.f_lasti] == opmap["IMPORT_FROM"]  # from a module
    )
    return ImportError(text, name=package) if is_import else AttributeError(text)
