"""The retrieval index: an estimator and the galleries of its views, which change while searched.

`contents` holds the rows of each view with their ids and objects as values, so that a search keeps
those it started with; `faiss_search` searches them approximately.
"""

from mvcca.retrieval.index.retrieval_index import RetrievalIndex

__all__ = ["RetrievalIndex"]
