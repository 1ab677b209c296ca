"""Deep CCA: encoders × objectives × one trainer, followed by linear CCA of the networks' outputs.

Requires torch: ``pip install 'mvcca[deep]'``. The estimators are used like all others. Their parts
also work on their own: functions of scores (`functional`), `objectives`, `layers`, `encoders`,
`samplers`, `callbacks` and the `trainer`.
"""

try:
    import torch  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"mvcca.deep needs torch, which cannot be imported ({error}): pip install mvcca[deep]"
    ) from error

from mvcca.deep._methods.acmr import ACMR
from mvcca.deep._methods.ccal import CCAL
from mvcca.deep._methods.ccl import CCL
from mvcca.deep._methods.cmdn import CMDN
from mvcca.deep._methods.corr_ae import CorrAE, CrossCorrAE
from mvcca.deep._methods.corrnet import CorrNet
from mvcca.deep._methods.dcca import DCCA, DCCAE, L0CCA
from mvcca.deep._methods.deep_sm import DeepSM
from mvcca.deep._methods.dynamically_scaled import DSDCCA, DSRankingCCA
from mvcca.deep._methods.encoder_cca import EncoderCCA
from mvcca.deep._methods.msds import MSDS
from mvcca.deep._methods.ranking import CLIP, DeViSE, LearnedRanking, TwoBranch
from mvcca.deep._methods.sam import SAM
from mvcca.deep._methods.soft_cca import SoftCCA, SoftHGR

__all__ = [
    "ACMR",
    "CCAL",
    "CCL",
    "CLIP",
    "CMDN",
    "DCCA",
    "DCCAE",
    "DSDCCA",
    "L0CCA",
    "MSDS",
    "SAM",
    "CorrAE",
    "CorrNet",
    "CrossCorrAE",
    "DSRankingCCA",
    "DeViSE",
    "DeepSM",
    "EncoderCCA",
    "LearnedRanking",
    "SoftCCA",
    "SoftHGR",
    "TwoBranch",
]
