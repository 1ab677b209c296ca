"""One environment per package in .bench/, since their requirements conflict."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENTS = ROOT / ".bench"

# Calls of SciPy and scikit-learn that mvlearn and pyrcca make are gone from newer versions, and the
# matplotlib that mvlearn asks for has no wheel for a Python as new as ours.
OLD = ["numpy==1.26.4", "scipy==1.11.4"]
REQUIREMENTS: dict[str, list[str]] = {
    "cca-zoo": ["cca-zoo[deep]==4.0.1", f"--constraint={ROOT / 'tests/constraints.txt'}"],
    "mvlearn": [*OLD, "scikit-learn==1.4.2", "matplotlib==3.8.4", "seaborn==0.13.2", "pandas<3"],
    "pyrcca": ["pyrcca==0.2", *OLD],
    "statsmodels": ["statsmodels==0.15.0", f"--constraint={ROOT / 'tests/constraints.txt'}"],
}
WITHOUT_REQUIREMENTS = {"mvlearn": "mvlearn==0.5.0"}


def interpreter(package: str) -> Path | None:
    """Python interpreter of a package; None if it is not installed."""
    if package not in REQUIREMENTS:
        return Path(sys.executable)
    python = ENVIRONMENTS / package / "bin" / "python"
    return python if python.exists() else None


def install(packages: list[str]) -> None:
    """Create missing environments of the given packages."""
    for package in packages:
        if interpreter(package) is not None:
            continue
        print(f"Installing {package} into {ENVIRONMENTS / package}")
        folder = ENVIRONMENTS / f"{package}.new"  # renamed when complete
        venv.create(folder, with_pip=True, clear=True)
        pip = [folder / "bin" / "python", "-m", "pip", "install", "--disable-pip-version-check"]
        subprocess.run([*pip, "--quiet", *REQUIREMENTS[package]], check=True)
        if package in WITHOUT_REQUIREMENTS:
            subprocess.run(
                [*pip, "--quiet", "--no-deps", WITHOUT_REQUIREMENTS[package]], check=True
            )
        folder.rename(ENVIRONMENTS / package)
