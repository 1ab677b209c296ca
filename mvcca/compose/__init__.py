"""Pipeline steps that split a matrix into views, transform each view, and join views.

`SplitViews` makes views from the columns of one matrix, `PerView` applies transformers such as
`RankGaussian` and `MomentPCA` to each view, `Encode` embeds items with a frozen encoder, `Tokens`
turns texts into sequences of words, and `JoinViews` makes one matrix from several views.
`Deconfound` removes one view from all others, `WithinSubject` the means of subjects.
"""

from mvcca.compose._deconfound import Deconfound
from mvcca.compose._encode import Encode
from mvcca.compose._join_views import JoinViews
from mvcca.compose._moment_pca import MomentPCA
from mvcca.compose._per_view import PerView
from mvcca.compose._rank_gaussian import RankGaussian
from mvcca.compose._split_views import SplitViews
from mvcca.compose._tokens import Tokens
from mvcca.compose._within_subject import WithinSubject

__all__ = [
    "Deconfound",
    "Encode",
    "JoinViews",
    "MomentPCA",
    "PerView",
    "RankGaussian",
    "SplitViews",
    "Tokens",
    "WithinSubject",
]
