"""The machine below the mathematics: options, memory, deadlines, threads, devices, files, warnings.

Nothing here knows of views. Users set the options of `mvcca.machine.config`; the other modules
serve the package.
"""

from mvcca.machine.config import Config, config_context, get_config, set_config

__all__ = ["Config", "config_context", "get_config", "set_config"]
