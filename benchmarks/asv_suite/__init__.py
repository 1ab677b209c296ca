"""Time and peak memory of small tasks, tracked at every commit.

    asv run --config benchmarks/asv.conf.json --python=same --quick
    asv continuous --config benchmarks/asv.conf.json main HEAD

Comparisons with floors and other packages are in the scripts of the parent directory.
"""
