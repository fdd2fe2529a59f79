"""Settings of the documentation: ``sphinx-build -W doc doc/_build/html``; needs no network."""

import os
import re
import runpy
from importlib.util import find_spec
from pathlib import Path

from sphinx.ext.autodoc.mock import _MockObject

import skvmf

project = "skvmf"
author = "the skvmf developers"
copyright = author
release = skvmf.__version__
version = ".".join(release.split(".")[:2])

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "examples", "generated/files.rst"]
templates_path = []
html_theme = "pydata_sphinx_theme"
html_static_path = ["_static"]
html_theme_options = {
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
}
html_show_sourcelink = False

autosummary_generate = True
if not find_spec("torch"):  # a large download: pages of its classes can be made without it
    autodoc_mock_imports = ["torch"]
    _MockObject.__or__ = _MockObject.__ror__ = lambda self, other: object  # Tensor | float
autodoc_typehints = "none"  # numpydoc sections say more
numpydoc_show_class_members = True
numpydoc_show_inherited_class_members = {}
numpydoc_class_members_toctree = False

os.environ.setdefault("MPLBACKEND", "Agg")
sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"plot_",
    "ignore_pattern": r"__init__\.py",
    "download_all_examples": False,
    "show_memory": False,
    "within_subsection_order": "FileNameSortKey",
}


def _keep_shapes_plain(app, what, name, obj, options, lines):
    """Quote attributes in shapes, ``(n_features_in_,)``: a trailing underscore means a link."""
    lines[:] = [re.sub(r"(?<=[(, ])(\w+_)(?=[,)])", r"``\1``", line) for line in lines]


def _list_files(app):
    """Write the list of files that the page on the architecture includes."""
    house = runpy.run_path(str(Path(app.srcdir, "contributing", "house.py")))
    generated = Path(app.srcdir, "generated")
    generated.mkdir(exist_ok=True)
    (generated / "files.rst").write_text(house["file_list"](), encoding="utf-8")


def setup(app):
    app.connect("builder-inited", _list_files)
    app.connect("autodoc-process-docstring", _keep_shapes_plain, priority=400)
