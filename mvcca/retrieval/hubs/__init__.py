"""Corrections for hubs: the published corrections, the banks they use, and corrected galleries.

`BankOfViews` holds the rows of all views that a correction compares with, and `Bank` those of one
direction. ``corrected(gallery, bank)`` is a gallery that is searched like any other.
"""

from mvcca.retrieval.hubs.bank_of_views import BankOfViews
from mvcca.retrieval.hubs.corrected import Bank, corrected
from mvcca.retrieval.hubs.corrections import (
    CSLS,
    HubCorrection,
    InvertedSoftmax,
    MutualProximity,
    QBNorm,
    check_bank,
    checked_correction,
)

__all__ = [
    "CSLS",
    "Bank",
    "BankOfViews",
    "HubCorrection",
    "InvertedSoftmax",
    "MutualProximity",
    "QBNorm",
    "check_bank",
    "checked_correction",
    "corrected",
]
