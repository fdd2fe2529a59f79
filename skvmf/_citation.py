"""What to cite for an estimator: which methods its parameters use, and their BibTeX entries."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

_Parameters = dict[str, Any]


def _pruning(params: _Parameters) -> bool:
    """Whether the prior on weights is not flat; None is a choice of SparseGaussianMixture."""
    prior = params["weight_concentration_prior"]
    if prior is None:
        return bool(params["entmax_alpha"] == 1 and "weights" not in params["fixed"])
    return bool(np.any(np.asarray(prior) != 1))


# The classes that use a method, themselves or by their bases, and with which parameters.
_USES: dict[str, tuple[str, Callable[[_Parameters], bool]]] = {
    "skvmf": ("BaseEstimator", lambda params: True),
    "dempster1977": ("BaseMixture", lambda params: params["temperature"] != 0),
    "celeux1992": ("BaseMixture", lambda params: params["temperature"] == 0),
    "banerjee2005": ("VonMisesFisherMixture", lambda params: True),
    "nonnenmacher": (
        "VonMisesFisherMixture",
        lambda params: params["negentropy"] in ("exact", "ode", "rational"),
    ),
    "peel2000": ("StudentTMixture", lambda params: True),
    "liu1995": (
        "StudentTMixture",
        lambda params: params["degrees_of_freedom"] in ("estimated", "tied"),
    ),
    "esser": ("RelativeGMM", lambda params: True),
    "tu2016": (
        "BaseMixture DependencyModelWithValence",
        lambda params: params.get("inference") != "mean-field" and _pruning(params),
    ),
    "sklaviadis": (
        "BaseMixture Autoencoder",
        lambda params: params.get("entmax_alpha", 2) > 1,
    ),
    "arthur2007": ("BaseMixture", lambda params: _is(params["init_params"], "k-means++")),
    "ward1963": ("ComponentPath", lambda params: True),
    "birge2007": ("ComponentPath", lambda params: _is(params["criterion"], "slope")),
    "biernacki2000": ("ComponentPath", lambda params: _is(params["criterion"], "icl")),
    "zhang2018": (
        "FisherVectorTransformer",
        lambda params: params["mixture"] is None or hasattr(params["mixture"], "negentropy"),
    ),
    "sanchez2013": ("FisherVectorTransformer", lambda params: True),
    "su2021": ("DirectionWhitener", lambda params: True),
    "klein2004": ("DependencyModelWithValence", lambda params: True),
    "kurihara2004": (
        "DependencyModelWithValence",
        lambda params: params["inference"] == "mean-field",
    ),
    "kingma2014": ("FenchelYoungVAE", lambda params: True),
    "miao2016": ("FenchelYoungDocumentModel", lambda params: True),
}


def _is(value: object, name: str) -> bool:
    return isinstance(value, str) and value == name


def entries(estimator: Any) -> dict[str, str]:
    """Return the BibTeX entries, by their keys, of an estimator and of those inside it."""
    text = Path(__file__).with_suffix(".bib").read_text(encoding="utf-8")
    known = {re.findall(r"{(\w+),", entry)[0]: entry for entry in text.strip().split("\n\n")}
    kinds = {kind.__name__ for kind in type(estimator).__mro__}
    params = estimator.get_params(deep=False)
    found = {
        key: known[key]
        for key, (names, uses) in _USES.items()
        if kinds & set(names.split()) and uses(params)
    }
    for inner in params.values():
        if hasattr(inner, "citation") and not isinstance(inner, type):
            found |= entries(inner)
    return found
