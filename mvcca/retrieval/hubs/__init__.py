"""Correction for hubs: CSLS, the banks it compares with, and corrected galleries.

`BankOfViews` holds the rows of all views that the correction compares with, and `Bank` those of one
direction. ``corrected(gallery, bank)`` is a gallery that is searched like any other.
"""

from mvcca.retrieval.hubs.bank_of_views import BankOfViews
from mvcca.retrieval.hubs.corrected import Bank, corrected
from mvcca.retrieval.hubs.csls import CSLS, check_bank, checked_correction

__all__ = [
    "CSLS",
    "Bank",
    "BankOfViews",
    "check_bank",
    "checked_correction",
    "corrected",
]
