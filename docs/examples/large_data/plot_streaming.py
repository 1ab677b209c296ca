"""
Files need not fit into memory
==============================

If the rows are in files, a fit reads them in blocks and keeps only sums. Memory depends on the size
of a block and the number of features, not on the number of rows. The files here are small, but a
file of any size is read in the same way.
"""

# %%
# Two views of 20,000 objects are written to ``.npy`` files, one block at a time, as a data pipeline
# would. The shared factors have known correlations.

import tempfile
import tracemalloc
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from mvcca import CCA, RetrievalIndex, Views, config_context, open_matrix

planted = np.array([0.95, 0.95, 0.9, 0.9, 0.8, 0.8, 0.7, 0.6])
rng = np.random.default_rng(0)
mixing = rng.normal(size=(100, 100)), rng.normal(size=(80, 80))
folder = tempfile.TemporaryDirectory()
paths = [Path(folder.name) / "image.npy", Path(folder.name) / "text.npy"]
n_rows = 20_000
files = [
    np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n_rows, len(matrix)))
    for path, matrix in zip(paths, mixing, strict=True)
]
for start in range(0, n_rows, 2000):
    rows = [rng.normal(size=(2000, len(matrix))) for matrix in mixing]
    rows[1][:, :8] = planted * rows[0][:, :8] + np.sqrt(1 - planted**2) * rows[1][:, :8]
    for file, block, matrix in zip(files, rows, mixing, strict=True):
        file[start : start + 2000] = block @ matrix
for file in files:
    file.flush()
print({path.name: f"{path.stat().st_size / 2**20:.1f} MiB" for path in paths})

# %%
# ``open_matrix`` opens a file without reading it, and selecting rows does not read them, either.
# The last 2,000 rows are held out.

views = Views({path.stem: open_matrix(path) for path in paths})
train, test = views[:18_000], views[18_000:]
print(train)

# %%
# A block has about 32 MiB by default. For files this small, a few hundred rows show the effect:
# memory grows with the block, and the result differs by rounding only.

sizes = [100, 250, 500, 1000, 2000]
peaks, correlations = [], []
for size in sizes:
    tracemalloc.start()
    with config_context(block_rows=size):
        model = CCA(8).fit(train)
    peaks.append(tracemalloc.get_traced_memory()[1] / 2**20)
    tracemalloc.stop()
    correlations.append(model.canonical_correlations_)
print("correlations", model.canonical_correlations_.round(3))
print("planted     ", planted)
print(f"largest difference between block sizes: {np.ptp(correlations, axis=0).max():.0e}")

figure, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
ax.plot(sizes, peaks, "o-")
whole = sum(path.stat().st_size for path in paths) / 2**20
ax.axhline(whole, color="#777777", linestyle=":", label="both files")
ax.set(xlabel="Rows of a block", ylabel="Peak memory of the fit, MiB", ylim=(0, None))
ax.legend()
plt.show()

# %%
# The gallery of an index is projected block by block, too. Each held-out text is searched among the
# held-out images.

index = RetrievalIndex(model).add(test.select(["image"]))
texts = test["text"].read(0, len(test))
_, found = index.search({"text": texts}, target="image", k=10)
hits = (found == np.arange(len(test))[:, None]).any(axis=1)
print(
    f"own image among the first 10 of {len(test)}: {hits.mean():.3f}, chance {10 / len(test):.3f}"
)
del files, views, train, test  # close the files
folder.cleanup()

# %%
# ``fit`` can also be interrupted and resumed, and several machines can share its work: see
# :doc:`/user_guide/large_data`.
