"""The machine below the mathematics: options, memory, deadlines, threads, devices, files, warnings.

Nothing here knows of views. Users set the options of `mvcca.machine.config`; the other modules
serve the package.
"""

from mvcca.machine.config import config_context, get_config, set_config

__all__ = ["config_context", "get_config", "set_config"]
