"""Base classes of the deep estimators: their pages document the parameters that methods share."""

from mvcca.deep._bases.cca_scores import CCAScores
from mvcca.deep._bases.estimator import DeepEstimator
from mvcca.deep._bases.mlp_estimator import NetworkEstimator
from mvcca.deep._bases.pretrained import Pretrained
from mvcca.deep._bases.started import StartedNetworks

__all__ = ["CCAScores", "DeepEstimator", "NetworkEstimator", "Pretrained", "StartedNetworks"]
