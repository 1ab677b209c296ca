"""`mvcca similarity`: how alike are layers of networks?"""

from __future__ import annotations

import re
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np

from mvcca.cli.console import show
from mvcca.cli.errors import CommandError, UsageError
from mvcca.cli.inputs import checked_output, configured
from mvcca.cli.signatures import chosen
from mvcca.interop.representations import MEASURES, SimilarityTable, compare_representations
from mvcca.machine.replacing import replacing


def run(options: Namespace) -> None:
    """Run the command."""
    for name in options.measures:
        if name not in MEASURES:
            raise UsageError(
                f"--measures: unknown measure {name!r}; choose from {', '.join(MEASURES)}"
            )
    files = {"layers": _files(options.layers)}
    if options.other is not None:
        files["other"] = _files(options.other)
    inputs = [str(file) for part in files.values() for file in part.values()]
    picture = None if options.plot is None else checked_output(options.plot, inputs)
    layers = {part: {name: _opened(own[name]) for name in own} for part, own in files.items()}
    with configured(options):
        found = compare_representations(
            layers["layers"],
            other=layers.get("other"),
            calibrate=options.calibrate,
            **chosen(options),
        )
    if picture is not None:
        with replacing(picture) as file:
            figure = found.plot().figure
            figure.savefig(file, format=Path(picture).suffix[1:] or "png")
    show(options, _text(found), list(found.rows()))


def _files(paths: list[str]) -> dict[str, Path]:
    """The files of layers by name, those of a folder in the order of their numbers."""
    found: dict[str, Path] = {}
    for path in map(Path, paths):
        files = sorted(path.glob("*.npy"), key=_by_number) if path.is_dir() else [path]
        if not files:
            raise CommandError(f"{path}: expected .npy files of layers, found none")
        for file in files:
            if file.stem in found:
                raise CommandError(
                    f"{file}: a layer of this name is also in {found[file.stem]}; to compare two "
                    f"networks, name the files of the second one after --other"
                )
            found[file.stem] = file
    return found


def _by_number(file: Path) -> list[tuple[int, str]]:
    parts = re.split(r"(\d+)", file.stem)
    return [(int(part), "") if part.isdigit() else (-1, part) for part in parts]


def _opened(file: Path) -> np.ndarray:
    """A memory-mapped matrix."""
    if file.suffix.lower() != ".npy":
        raise CommandError(
            f"{file}: expected a .npy file with a row per object, got {file.suffix or 'none'}; "
            "write one by np.save"
        )
    try:
        return np.asanyarray(np.load(file, mmap_mode="r"))
    except (ValueError, OSError) as error:
        raise CommandError(f"{file}: expected a .npy file with a row per object: {error}") from None


def _text(found: SimilarityTable) -> str:
    lines = [str(found)]
    z: Any = found.z[next(iter(found.raw))]
    if np.isfinite(z).any() and len(found.names) * len(found.other) > 1:
        weak, told = int((z < 2).sum()), int((~np.isnan(z)).sum())
        lines.append(f"{weak} of {told} pairs are no more alike than unrelated layers (z < 2)")
    elif np.isfinite(z).any():
        lines.append(f"z = {z.item():.1f}")
    return "\n".join(lines)
