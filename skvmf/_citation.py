"""What to cite for an estimator: which methods its parameters use, and their BibTeX entries."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

_Uses = Callable[[dict[str, Any]], Any]


def _pruning(p: dict[str, Any]) -> bool:
    """Whether the prior on weights is not flat; None is a choice of SparseGaussianMixture."""
    prior = p["weight_concentration_prior"]
    if prior is None:
        return bool(p["entmax_alpha"] == 1 and "weights" not in p["fixed"])
    return p.get("inference") != "mean-field" and bool(np.any(np.asarray(prior) != 1))


# The classes that use a method, themselves or by their bases, and with which parameters.
_USES: dict[str, tuple[str, _Uses | None]] = {
    "skvmf": ("BaseEstimator", None),
    "dempster1977": ("BaseMixture", lambda p: p["temperature"] != 0),
    "celeux1992": ("BaseMixture", lambda p: p["temperature"] == 0),
    "banerjee2005": ("VonMisesFisherMixture", None),
    "nonnenmacher": (
        "VonMisesFisherMixture",
        lambda p: p["negentropy"] in ("exact", "ode", "rational"),
    ),
    "peel2000": ("StudentTMixture", None),
    "liu1995": ("StudentTMixture", lambda p: isinstance(p["degrees_of_freedom"], str)),
    "esser": ("RelativeGMM", None),
    "tu2016": ("BaseMixture DependencyModelWithValence", _pruning),
    "sklaviadis": ("BaseMixture Autoencoder", lambda p: p.get("entmax_alpha", 2) > 1),
    "arthur2007": ("BaseMixture", lambda p: repr(p["init_params"]) == "'k-means++'"),
    "ward1963": ("ComponentPath", None),
    "birge2007": ("ComponentPath", lambda p: p["criterion"] == "slope"),
    "biernacki2000": ("ComponentPath", lambda p: p["criterion"] == "icl"),
    "zhang2018": (
        "FisherVectorTransformer",
        lambda p: p["mixture"] is None or hasattr(p["mixture"], "negentropy"),
    ),
    "sanchez2013": ("FisherVectorTransformer", None),
    "su2021": ("DirectionWhitener", None),
    "klein2004": ("DependencyModelWithValence", None),
    "kurihara2004": ("DependencyModelWithValence", lambda p: p["inference"] == "mean-field"),
    "kingma2014": ("FenchelYoungVAE", None),
    "miao2016": ("FenchelYoungDocumentModel", None),
}


def entries(estimator: Any) -> dict[str, str]:
    """Return the BibTeX entries, by their keys, of an estimator and of those inside it."""
    text = Path(__file__).with_suffix(".bib").read_text(encoding="utf-8")
    known = {re.findall(r"{(\w+),", entry)[0]: entry for entry in text.strip().split("\n\n")}
    kinds = {kind.__name__ for kind in type(estimator).__mro__}
    params = estimator.get_params(deep=False)
    found = {
        key: known[key]
        for key, (names, uses) in _USES.items()
        if kinds & set(names.split()) and (uses is None or uses(params))
    }
    for inner in params.values():
        if hasattr(inner, "citation") and not isinstance(inner, type):
            found |= entries(inner)
    return found
