"""Several blocks of rows with common objects, their labels, and what both must satisfy.

`Views` pairs rows of several matrices; `Labels` are distinct label vectors and a code per row.
`mvcca.views.files` reads both from files, and `mvcca.views.validation` checks what estimators are
given.
"""

from mvcca.views._views import (
    Views,
    as_views,
    holds_views,
    in_same_container,
)
from mvcca.views.labels import Labels

__all__ = [
    "Labels",
    "Views",
    "as_views",
    "holds_views",
    "in_same_container",
]
