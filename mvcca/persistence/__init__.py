"""Models and results in files, written whole or not at all.

Models are arrays and plain parameters, never pickle, and are checked when they are read.
`ProjectedRows` applies a function to rows block by block, and writes the result as a table.
"""

from mvcca.machine.archive import ModelFileError
from mvcca.persistence._description import describe
from mvcca.persistence._models import load, save
from mvcca.persistence._projected import ProjectedRows
from mvcca.persistence._resumable import resumable
from mvcca.persistence._tables import check_format, check_writable, write_npy, write_table

__all__ = [
    "ModelFileError",
    "ProjectedRows",
    "check_format",
    "check_writable",
    "describe",
    "load",
    "resumable",
    "save",
    "write_npy",
    "write_table",
]
