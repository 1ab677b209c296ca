"""Studies of two sets of variables: the steps, their result in tables and words, and its page."""

from mvcca.inspection.study._result import Study
from mvcca.inspection.study._steps import study

__all__ = ["Study", "study"]
