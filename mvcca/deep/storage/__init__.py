"""How files hold deep models: which layers and callbacks may be in them, and the parts of each."""

from mvcca.deep.storage._parts import STORED, output_width

__all__ = ["STORED", "output_width"]
