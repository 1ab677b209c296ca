"""Tracked figures, time and peak memory, small enough to run at every commit.

    asv run --config benchmarks/asv.conf.json --python=same --quick
    asv continuous --config benchmarks/asv.conf.json main HEAD

What must hold against a floor or a peer is not here but in the scripts beside this folder.
"""
