"""Progress bars of loops that take as many steps as they need."""

from __future__ import annotations

from collections.abc import Generator

from mvcca.machine.config import get_config


def steps(most: int, title: str) -> Generator[int]:
    """Count steps, at most so many, with a progress bar if one is configured."""
    if not get_config().progress:
        yield from range(most)
        return
    from tqdm.auto import tqdm

    with tqdm(desc=title, unit=" steps", dynamic_ncols=True) as bar:
        for number in range(most):
            yield number
            bar.update()
