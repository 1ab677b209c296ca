"""
Any vector store can rank as a model does
=========================================

A vector store knows inner products, and nothing of canonical correlations. The weights of a ranking
can be folded into the vectors, so that the store finds what the model would find.
"""

# %%
# The model maps left and right halves of digits into one space, and ranks by likelihood.

import matplotlib.pyplot as plt
import numpy as np

from mvcca import CCA, RetrievalIndex
from mvcca.datasets import load_digits_views
from mvcca.interop import affine_map
from mvcca.plotting import RetrievedDisplay
from mvcca.retrieval import retrieval_vectors

digits = load_digits_views()
train, test, labels = digits.views[:1200], digits.views[1200:], digits.labels[1200:]
model = CCA(20, reg=0.1).fit(train)

# %%
# ``retrieval_vectors`` returns the vectors to store, and those to search with. Any store that ranks
# by inner product takes them: faiss, qdrant, pgvector, usearch, LanceDB, DuckDB. Here a matrix
# product is the store.

stored = retrieval_vectors(model, {"right": test["right"]})["right"].astype(np.float32)
queries = retrieval_vectors(model, {"left": test["left"]}, role="query")["left"]
found = np.argsort(-(queries.astype(np.float32) @ stored.T), axis=1, kind="stable")[:, :10]

index = RetrievalIndex(model).add({"right": test["right"]})
_, expected = index.search({"left": test["left"]}, target="right", k=10)
print(f"{stored.shape[1]} numbers per item; same ranked items: {np.mean(found == expected):.4f}")

# %%
# If faiss is installed, its exact index finds them, too. Ties and rounding to single precision may
# exchange items whose scores are equal to seven digits.

try:
    import faiss

    store = faiss.IndexFlatIP(stored.shape[1])
    store.add(np.ascontiguousarray(stored))
    _, of_faiss = store.search(np.ascontiguousarray(queries, dtype=np.float32), 10)
    print(f"faiss: same ranked items {np.mean(of_faiss == expected):.4f}")
except ImportError:
    print("faiss is not installed")

# %%
# A service that answers queries need not install mvcca at all: the map of a view is a matrix and an
# offset. Normalized to unit length, mapped rows rank by the cosine of weighted components.

W, b = affine_map(model, "left")
mapped = test["left"] @ W + b
mapped /= np.linalg.norm(mapped, axis=1, keepdims=True)
cosine = retrieval_vectors(model, {"left": test["left"]}, weighting="likelihood-cosine")["left"]
print(f"W {W.shape}, b {b.shape}; largest difference {np.abs(mapped - cosine).max():.0e}")

# %%
# What a query finds, whichever way it is searched for: frames are solid around halves of the same
# digit.

RetrievedDisplay.from_estimator(model, test, labels, show=(8, 4), queries=[0, 4, 11, 15, 30], k=10)
plt.show()
