"""How the documentation is built: `make docs`.

Nothing here reaches for the network, except with MVCCA_DOCS_LINKS=1: then names of Python, NumPy,
SciPy, scikit-learn, matplotlib and PyTorch link to their documentation, whose inventories are read.
"""

import os
import re
import shutil
import sys
from importlib.metadata import version as installed_version
from pathlib import Path

HERE = Path(__file__).parent
sys.path.append(str(HERE))  # the modules beside this file

import image_texts  # noqa: E402
import project_links  # noqa: E402

import mvcca  # noqa: E402

project = "mvcca"
author = "The mvcca developers"
copyright = "The mvcca developers"
version = release = installed_version("mvcca")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx-mathjax-offline",  # formulas are typeset without a network
    "sphinx_copybutton",
    "sphinx_design",
    "numpydoc",
    "myst_parser",  # reads CHANGELOG.md and RESULTS.md
    "sphinx_gallery.gen_gallery",
]
if os.environ.get("MVCCA_DOCS_LINKS") == "1":
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {
        "python": ("https://docs.python.org/3", None),
        "numpy": ("https://numpy.org/doc/stable", None),
        "scipy": ("https://docs.scipy.org/doc/scipy", None),
        "sklearn": ("https://scikit-learn.org/stable", None),
        "matplotlib": ("https://matplotlib.org/stable", None),
        "torch": ("https://docs.pytorch.org/docs/stable", None),
    }
    intersphinx_timeout = 20
templates_path = ["_templates"]
exclude_patterns = ["_build", "_templates", "examples"]
suppress_warnings = [
    *("myst.header", "myst.xref_missing"),  # RESULTS.md is written to be read alone
    "ref.term",  # docstrings that are inherited from scikit-learn refer to its glossary
]
default_role = "py:obj"

# A module's page lists its __all__, so a public name cannot be forgotten here.
autosummary_ignore_module_all = False
autosummary_imported_members = True
autodoc_typehints = "none"  # numpydoc's Parameters section says more
numpydoc_show_class_members = False  # the class template lists them

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "doc_module": ("mvcca",),
    "image_scrapers": ("matplotlib",),
    "backreferences_dir": "generated/backreferences",  # examples on the page of each class
    "subsection_order": "gallery_order.folder",
    "within_subsection_order": "gallery_order.example",
    "download_all_examples": False,
    "remove_config_comments": True,
    "min_reported_time": 1,
    "reset_modules": ("gallery_order.package_style",),
}

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_static_path = ["_static"]
html_css_files = ["mvcca.css"]
html_js_files = ["accessible.js"]
html_theme = "pydata_sphinx_theme"
html_title = "mvcca"
html_favicon = "_static/logo.svg"
html_theme_options = {
    "header_links_before_dropdown": 6,  # as many as fit in one row at 1280 px
    "icon_links": project_links.icon_links(),
    "logo": {
        "text": "mvcca",
        "alt_text": "mvcca: start page",
        "image_light": "_static/logo.svg",
        "image_dark": "_static/logo-dark.svg",
    },
    "navbar_align": "left",
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": False,
}
# Pages without subpages need no navigation at the side.
SINGLE_PAGES = (
    "index getting_started background migration faq glossary citing contributing changelog"
)
html_sidebars = {page: [] for page in SINGLE_PAGES.split()}
html_context = {"default_mode": "auto"}  # the colours that the reader's system asks for
html_show_sourcelink = False


def skip_what_others_document(_app, _what, _name, obj, _skip, _options):
    """Leave inherited methods of libraries out: their text links to those libraries' own pages."""
    home = getattr(getattr(obj, "fget", obj), "__module__", None) or ""
    return True if home.partition(".")[0] in ("sklearn", "torch") else None


def escape_names_in_shapes(_app, _what, _name, _obj, _options, lines):
    """Keep ``shape (n_features, n_components_)`` text: reST takes ``n_components_`` for a link."""
    lines[:] = [
        re.sub(r"shape \([^)]*\)", lambda shape: re.sub(r"_(?=[,)])", r"\\_", shape[0]), line)
        for line in lines
    ]


def write_results(_app):
    """Write a page per section of the results, and draw the charts from their tables."""
    from results_charts import draw_charts
    from results_pages import ROOT, all_sections, menu_of, write_pages

    sections = all_sections()
    sources = draw_charts(HERE / "generated" / "charts", sections)
    write_pages(HERE / "generated" / "results", sections, sources)
    (HERE / "generated" / "results_menu.txt").write_text(menu_of(sections), encoding="utf-8")
    plots = ROOT / "benchmarks" / "results" / "plots"
    shutil.copytree(plots, HERE / "generated" / "results" / "plots", dirs_exist_ok=True)


CALLED = {"fit", "transform", "partial_fit", "fit_transform", "score", "predict", "predictor"}
CALLED |= {"inverse_transform", "get_feature_names_out"}
CALLED |= {"fit_statistic"}


def skip_what_writers_of_methods_override(app, what, name, _obj, _skip, _options):
    """Show on the page of an estimator what its users call; the pages of `mvcca.base` show all."""
    from mvcca.base import MultiViewEstimator, RankedByCorrelation, StatisticEstimator

    module, _, own = app.env.current_document.docname.rpartition("/")[2].rpartition(".")
    owner = getattr(sys.modules.get(module), own, None)
    if what != "class" or module == "mvcca.base" or not isinstance(owner, type):
        return None
    if not issubclass(owner, MultiViewEstimator):
        return None
    bases = [*StatisticEstimator.__mro__, RankedByCorrelation]
    inherited = {n for b in bases if b.__module__.startswith("mvcca.base") for n in vars(b)}
    return True if name in inherited - CALLED else None


def mend_links_from_source(app, pagename, _template, context, _doctree):
    """Lead "[docs]" beside the source of what two modules export to the target on its page.

    `sphinx.ext.viewcode` combines the page of one module with the name in the other.
    """
    objects = app.env.get_domain("py").objects

    def mended(link):
        folder, page, name = link.groups()
        own = page.rpartition(".")[2]
        wanted = page + name.partition(f".{own}")[2]
        return f'href="{folder}{page}.html#{wanted if wanted in objects else name}"'

    if pagename.startswith("_modules/"):
        link = r'href="([^"#]*/generated/)([\w.]+)\.html#([\w.]+)"'
        context["body"] = re.sub(link, mended, context["body"])


def resolve_names_of_the_top_level(app, env, node, contnode):
    """Link ``mvcca.CCA`` to the page of the module that has it."""
    from sphinx.util.nodes import make_refnode

    root, _, name = node.get("reftarget", "").partition(".")
    if node.get("refdomain") != "py" or root != "mvcca" or not hasattr(mvcca, name):
        return None
    module = getattr(getattr(mvcca, name), "__module__", None) or ""
    places = [module.rpartition("._")[0] or module, module]
    for place in places:
        entry = env.get_domain("py").objects.get(f"{place}.{name}")
        if entry is not None:
            docname = node.get("refdoc", env.docname)
            return make_refnode(app.builder, docname, entry.docname, entry.node_id, contnode, name)
    return None


def setup(app):
    app.connect("missing-reference", resolve_names_of_the_top_level)
    app.connect("html-page-context", mend_links_from_source)
    app.connect("builder-inited", write_results)
    app.connect("doctree-read", image_texts.describe_images)
    app.connect("autodoc-skip-member", skip_what_others_document)
    app.connect("autodoc-skip-member", skip_what_writers_of_methods_override)
    app.connect("autodoc-process-docstring", escape_names_in_shapes, priority=400)  # numpydoc: 500
