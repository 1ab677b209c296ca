"""Views, labels and ids in files: `read_views` opens matrices in any format, with their labels."""

from typing import TYPE_CHECKING

from mvcca.machine.on_access import on_access
from mvcca.views.files._identified import (
    IdentifiedRows,
    common_rows,
    matched,
    open_all,
    open_identified,
    paired,
    read_matched_views,
    values_of_ids,
)
from mvcca.views.files._labels import read_ids, read_label_vectors, read_labels, read_row_numbers
from mvcca.views.files._tables import SubjectTable, read_table
from mvcca.views.files._views import file_stamp, open_rows, open_view, read_views

__all__ = [
    "IdentifiedRows",
    "SubjectTable",
    "common_rows",
    "file_stamp",
    "matched",
    "open_all",
    "open_identified",
    "open_rows",
    "open_view",
    "paired",
    "read_ids",
    "read_label_vectors",
    "read_labels",
    "read_matched_views",
    "read_row_numbers",
    "read_table",
    "read_views",
    "values_of_ids",
]

if not TYPE_CHECKING:  # it would hide misspelt names
    __getattr__ = on_access(__name__)
