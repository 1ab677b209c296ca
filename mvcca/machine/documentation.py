"""Links of estimators' HTML displays to their pages, if the package's metadata name a site."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, metadata


@cache
def documentation_url() -> str:
    """Address of the documentation, as ``project.urls`` of pyproject.toml has it, or nothing."""
    try:
        urls = metadata("mvcca").get_all("Project-URL") or []
    except PackageNotFoundError:  # sources on the path
        return ""
    for name, _, address in (line.partition(",") for line in urls):
        if name.strip().lower() in ("documentation", "docs"):
            return address.strip().rstrip("/")
    return ""


class Documented:
    """Mixin of estimators with a page in the documentation, to which scikit-learn links.

    Pages are named by the public module and the class, as ``mvcca.linear.CCA``.
    """

    _doc_link_module = "mvcca"

    @property
    def _doc_link_template(self) -> str:
        url = documentation_url()
        return f"{url}/generated/{{estimator_module}}.{{estimator_name}}.html" if url else ""
