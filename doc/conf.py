"""Settings of the documentation: ``sphinx-build -W doc doc/_build/html``.

With ``-t offline`` names of other projects are no links, and no network is needed.
"""

import os
import re
import runpy
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from matplotlib.figure import Figure
from sklearn.feature_extraction.text import TfidfVectorizer
from sphinx.ext.autodoc.mock import _MockObject
from sphinx.util.nodes import get_node_source
from threadpoolctl import threadpool_limits

import skvmf
from skvmf import ComponentPath, VonMisesFisherMixture
from skvmf.datasets import load_docstrings
from skvmf.plotting import cluster_report

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]  # colours, and reproduction
GENERATED = HERE / "generated"

project = "skvmf"
author = "the skvmf developers"
copyright = author
release = skvmf.__version__
version = ".".join(release.split(".")[:2])

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.mathjax",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "measured",
]
exclude_patterns = [
    "_build",
    "examples",
    "generated/files.rst",
    "generated/rivals.rst",
    "generated/reproduction_*.rst",
    "generated/speed.rst",
    "generated/upcoming.rst",
    "generated/backreferences",
    "whats_new",
]
templates_path = ["_templates"]
html_theme = "pydata_sphinx_theme"
html_title = "skvmf"
html_static_path = ["_static"]
html_css_files = ["skvmf.css"]
html_favicon = "_static/logo.svg"
html_theme_options = {
    "github_url": "https://github.com/skvmf/skvmf",
    "logo": {"image_light": "_static/logo.svg", "image_dark": "_static/logo.svg", "text": "skvmf"},
    "navbar_start": ["navbar-logo", "version-switcher"],
    "switcher": {
        "json_url": "_static/switcher.json",
        "version_match": "dev" if "dev" in release else release,
    },
    "header_links_before_dropdown": 4,
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
}
html_sidebars = {"index": [], "install": [], "whats_new": []}
html_show_sourcelink = False

# Formulas are drawn by a copy of MathJax that is part of the site: no server but the site's own.
mathjax_path = "mathjax/tex-svg.js"
mathjax_options = {"defer": "defer"}

# The copy button leaves out prompts and outputs.
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True

default_role = "literal"
toc_object_entries_show_parents = "hide"
autosummary_generate = True
has_torch = find_spec("torch") is not None
if not has_torch:  # a large download: pages of its classes can be made without it
    autodoc_mock_imports = ["torch"]
    _MockObject.__or__ = _MockObject.__ror__ = lambda self, other: object  # Tensor | float
autodoc_typehints = "none"  # numpydoc sections say more
numpydoc_show_class_members = False  # the template of classes documents each method in full
numpydoc_xref_param_type = True
numpydoc_xref_ignore = "all"

intersphinx_mapping = {
    "matplotlib": ("https://matplotlib.org/stable/", None),
    "numpy": ("https://numpy.org/doc/stable/", None),
    "python": ("https://docs.python.org/3/", None),
    "scipy": ("https://docs.scipy.org/doc/scipy/", None),
    "sklearn": ("https://scikit-learn.org/stable/", None),
}
intersphinx_timeout = 10
offline = tags.has("offline")  # noqa: F821, which Sphinx defines
if offline:
    intersphinx_mapping = {}

os.environ.setdefault("MPLBACKEND", "Agg")
# The gallery's fits are small: further threads would mostly wait. torch is imported later.
os.environ.setdefault("OMP_NUM_THREADS", "1")
threadpool_limits(1)
# Scripts that need what is not installed are shown without being run.
needs = {
    "torch": ["document_topics", "vae_digits"],
    "wordllama": ["embeddings_end_to_end", "known_labels", "umap_hdbscan"],
    "umap": ["umap_hdbscan"],
    "hdbscan": ["umap_hdbscan"],
    "faiss": ["clusterers_on_directions"],
    "superkmeans": ["clusterers_on_directions"],
}
left_out = [script for name, all_of in needs.items() if not find_spec(name) for script in all_of]
sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": f"plot_(?!{'|'.join(left_out)})" if left_out else "plot_",
    "ignore_pattern": r"__init__\.py",
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("skvmf",),
    "reset_modules": ("matplotlib", "colours.reset"),
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,  # tables that ask other servers for scripts
    "capture_repr": (),  # what a script prints, and no <object at 0x...>
    "within_subsection_order": "gallery_order.AsInHeader",
}


def _keep_shapes_plain(app, what, name, obj, options, lines):
    """Quote attributes in shapes, ``(n_features_in_,)``: a trailing underscore means a link."""
    lines[:] = [re.sub(r"(?<=[(, ])(\w+_)(?=[,)])", r"``\1``", line) for line in lines]


OFTEN = [
    *("n_components", "concentration_type", "covariance_type", "degrees_of_freedom", "order"),
    *("ordering_feature", "background", "missing_values", "random_state", "n_init"),
    *("weight_concentration_prior", "concentration_prior", "temperature", "entmax_alpha"),
]
STARTS = [
    *("init_params", "init_size", "weights_init", "means_init", "concentrations_init"),
    *("precisions_init", "scale_matrices_init", "fixed", "flat_start", "warm_start"),
]


def _group_parameters(app, what, name, obj, options, lines):
    """Group the parameters of a class with many: often, starts, rarely."""
    if what != "class" or ":Parameters:" not in lines:
        return
    first = lines.index(":Parameters:") + 1
    last = next((i for i in range(first, len(lines)) if lines[i][:1].strip()), len(lines))
    groups, own = {"Often set": [], "Starts": [], "Rarely set": []}, None
    for line in lines[first:last]:
        entry = re.match(r"    \*\*(\w+)\*\* :", line)
        if entry:
            title = "Starts" if entry[1] in STARTS else "Rarely set"
            own = groups["Often set" if entry[1] in OFTEN else title]
        if own is not None:
            own.append(line)
    if all(groups.values()):
        texts = ([f"    *{title}*", "", *entries] for title, entries in groups.items())
        lines[first:last] = ["", *(line for text in texts for line in text)]


def _name_without_link(app, env, node, text):
    """Show names of other projects in docstrings without links, if there is no network."""
    return text if offline and "docstring of" in get_node_source(node) else None


def _describe_architecture(app):
    """Write what the architecture page includes: diagrams and the list of files."""
    diagrams = runpy.run_path(str(HERE / "contributing" / "diagrams.py"))
    diagrams["write"](GENERATED)


def _write_speed(app):
    """Write tables and pictures of the performance page."""
    speed = runpy.run_path(str(HERE / "speed_table.py"))
    tables = speed["speed_table"](speed["MAIN"]) + "\n" + speed["folded"](speed["speed_table"]())
    (GENERATED / "speed.rst").write_text(tables, encoding="utf-8")
    runpy.run_path(str(HERE / "rivals_picture.py"))["write"](GENERATED)


def _write_change_notes(app):
    """Write the notes of the next release, which the page of changes includes."""
    draft = ["towncrier", "build", "--draft", "--version", "In development"]
    notes = subprocess.check_output([sys.executable, "-m", *draft], cwd=HERE.parent)
    (GENERATED / "upcoming.rst").write_bytes(notes)


def _write_reproduction(app):
    """Write what the pages of results and errata include, from the records."""
    from reproduction import page

    page.write(GENERATED)


def _stand_in_for_pictures(app):
    """Draw a note for each picture on a page whose script of the gallery is not run."""
    picture = re.compile(r"/(auto_examples/images/sphx_glr_plot_(\w+)_\d+\.png)")
    for page in HERE.rglob("*.rst"):
        for path, script in picture.findall(page.read_text(encoding="utf-8")):
            run = app.config.sphinx_gallery_conf["plot_gallery"] and script not in left_out
            if not run and not (HERE / path).exists():
                figure = Figure(figsize=(6, 1))
                figure.text(0.5, 0.5, f"plot_{script}.py draws this picture", ha="center")
                figure.savefig(HERE / path)


def _write_cluster_report(app, exception):
    """Write a report of the docstrings, which the page on hierarchies shows, into the site."""
    if exception is None and app.builder.format == "html":
        corpus = load_docstrings()
        vectorizer = TfidfVectorizer(
            stop_words="english", token_pattern="[a-z]{2,}", min_df=5, max_df=0.3, sublinear_tf=True
        )
        X = vectorizer.fit_transform(corpus.data)
        mixture = VonMisesFisherMixture(concentration_type="tied", random_state=0)
        path = ComponentPath(mixture, max_components=20, criterion="bic").fit(X)
        cluster_report(path, X, corpus.data, file=Path(app.outdir, "_static", "clusters.html"))


def _ship_mathjax(app, exception):
    """Copy MathJax, one file that draws with paths and asks for no fonts, into the site."""
    if exception is None and app.builder.format == "html":
        package = Path(find_spec("mathjax").origin).parent / "static" / "mathjax"
        target = Path(app.outdir, "_static", "mathjax")
        target.mkdir(parents=True, exist_ok=True)
        for source in (package / "es5" / "tex-svg.js", package / "LICENSE"):
            (target / source.name).write_bytes(source.read_bytes())


def setup(app):
    app.connect("builder-inited", _describe_architecture)
    app.connect("builder-inited", _write_speed)
    app.connect("builder-inited", _write_change_notes)
    app.connect("builder-inited", _write_reproduction)
    app.connect("builder-inited", _stand_in_for_pictures)
    app.connect("build-finished", _ship_mathjax)
    app.connect("build-finished", _write_cluster_report)
    app.connect("missing-reference", _name_without_link)
    app.connect("autodoc-process-docstring", _keep_shapes_plain, priority=400)
    app.connect("autodoc-process-docstring", _group_parameters, priority=600)
