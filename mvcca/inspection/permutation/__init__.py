"""Permutation tests of canonical correlations.

The rows are checked by `_rows` of the folder above. `_nuisance` rotates them to rows that
stay exchangeable without confounds, `_design` and `_exchange` say which rearrangements are allowed,
`_statistics` computes every step of a rearrangement from one product, `_trials` runs them.
"""

from mvcca.inspection.permutation._result import PermutationTest
from mvcca.inspection.permutation._test import permutation_test

__all__ = ["PermutationTest", "permutation_test"]
