"""Passes over the rows of views, block by block.

`accumulate` adds up a statistic of every block, and `fold` updates a state with every block. Blocks
that are not in memory are read ahead by threads, or processed by the workers of a Dask cluster, and
a pass can resume from its checkpoint. What is added up is defined in `mvcca.statistics`.
`ProjectedRows` applies a function, such as a model, to every block, and writes the results.
"""

from mvcca.statistics.passes._accumulate import accumulate, fold, watched
from mvcca.statistics.passes._blocks import row_blocks, row_bytes_of
from mvcca.statistics.passes._checkpoint import (
    checkpoint_of_fit,
    checkpoint_until_written,
    checkpointed_steps,
    file_of_next_pass,
    fingerprint_of,
    is_pass_file,
    not_kept,
    refuse_other_files,
)
from mvcca.statistics.passes._projected import ProjectedRows
from mvcca.statistics.passes._read_ahead import blocks_read_ahead
from mvcca.statistics.passes._workers import workers

__all__ = [
    "ProjectedRows",
    "accumulate",
    "blocks_read_ahead",
    "checkpoint_of_fit",
    "checkpoint_until_written",
    "checkpointed_steps",
    "file_of_next_pass",
    "fingerprint_of",
    "fold",
    "is_pass_file",
    "not_kept",
    "refuse_other_files",
    "row_blocks",
    "row_bytes_of",
    "watched",
    "workers",
]
