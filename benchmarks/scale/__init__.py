"""Time and memory, beside the least that the task needs or beside another implementation.

Fits, rankings, indexes, tests and searches of settings in memory; files larger than memory, Dask
and GPUs; estimated times beside measured ones. Other packages are measured in `benchmarks.peers`.
"""
