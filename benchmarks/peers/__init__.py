"""Other packages on the same data: ``python -m benchmarks.peers``.

`tasks` are the data, `packages` the calls, `measure` fits one package in its own environment.
"""
