"""Views, labels and ids in files, and files of projected rows.

`read_views` opens the matrices of views with `mvcca.sources`, in any format, together with their
labels. `ProjectedRows` applies a function to rows block by block, and writes the result.
"""

from mvcca.files._labels import read_ids, read_label_vectors, read_labels, read_row_numbers
from mvcca.files._projected import ProjectedRows
from mvcca.files._views import file_stamp, open_view, read_views
from mvcca.files._write import check_format, check_writable, write_npy, write_table

__all__ = [
    "ProjectedRows",
    "check_format",
    "check_writable",
    "file_stamp",
    "open_view",
    "read_ids",
    "read_label_vectors",
    "read_labels",
    "read_row_numbers",
    "read_views",
    "write_npy",
    "write_table",
]
