"""Views, labels and ids in files: `read_views` opens tables in any format, with their labels."""

from typing import TYPE_CHECKING

from mvcca.machine.on_access import on_access
from mvcca.views.files._labels import read_ids, read_label_vectors, read_labels, read_row_numbers
from mvcca.views.files._views import (
    check_same_order,
    common_rows,
    file_stamp,
    in_order,
    open_tables,
    paired,
    places_of,
    read_views,
    rows_of_ids,
    values_of_ids,
)

__all__ = [
    "check_same_order",
    "common_rows",
    "file_stamp",
    "in_order",
    "open_tables",
    "paired",
    "places_of",
    "read_ids",
    "read_label_vectors",
    "read_labels",
    "read_row_numbers",
    "read_views",
    "rows_of_ids",
    "values_of_ids",
]

if not TYPE_CHECKING:  # it would hide misspelt names
    __getattr__ = on_access(__name__)
