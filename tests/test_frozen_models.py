"""What every estimator learns from a frozen set of inputs is what it learned when they were frozen.

A change that is meant to give other numbers writes the reference anew, and says so in the
changelog: `python tests/frozen_models.py --write tests/data/frozen-models.npz`.
"""

from __future__ import annotations

from pathlib import Path

import frozen_models
import pytest

REFERENCE = frozen_models.read(Path(__file__).parent / "data" / "frozen-models.npz")
CASES = list(frozen_models.cases())
# Most models agree to 1e-11. The worst, MVMLCCA with Fourier label features on wide views, has two
# eigenvalues 6e-5 apart: a change of the rows by one unit in the last place changes its weights by
# 6e-11, and another order of operations by 1e-10.
EXACT, SINGLE = 1e-8, 1e-4


def test_the_reference_is_of_these_cases():
    assert set(REFERENCE) == {case for case, *_ in CASES}


@pytest.mark.parametrize("name", frozen_models.ESTIMATORS)
def test_models_of_frozen_inputs_are_the_old_ones(name):
    for case, estimator, make in CASES:
        if estimator is frozen_models.ESTIMATORS[name]:
            tolerance = frozen_models.tolerance_of(case, EXACT, SINGLE)
            found = frozen_models.learned(estimator, make)
            wrong = list(frozen_models.differences(case, found, REFERENCE[case], tolerance))
            assert not wrong, case
