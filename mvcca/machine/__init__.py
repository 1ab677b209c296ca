"""The machine below the mathematics: options, memory, deadlines, threads, devices, files, warnings.

Nothing here knows of views. Users set the options of `mvcca.machine.config`; the other modules
serve the package.
"""

from typing import TYPE_CHECKING

from mvcca.machine.config import config_context, get_config, set_config
from mvcca.machine.on_access import on_access

__all__ = ["config_context", "get_config", "set_config"]

if not TYPE_CHECKING:  # it would hide misspelt names
    __getattr__ = on_access(__name__)
