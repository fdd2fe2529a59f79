"""What an estimator asks to cite follows from its parameters."""

import re

import pytest

from skvmf import (
    FisherVectorTransformer,
    RelativeGMM,
    SparseGaussianMixture,
    StudentTMixture,
    VonMisesFisherMixture,
    __version__,
)
from skvmf.grammar import DependencyModelWithValence
from skvmf.model_selection import ComponentPath
from skvmf.preprocessing import DirectionWhitener

from .conftest import ROOT

VMF = "dempster1977 banerjee2005 nonnenmacher"
CASES = [
    (VonMisesFisherMixture(), VMF),
    (VonMisesFisherMixture(negentropy="newton"), "dempster1977 banerjee2005"),
    (VonMisesFisherMixture(temperature=0), "celeux1992 banerjee2005 nonnenmacher"),
    (VonMisesFisherMixture(weight_concentration_prior=[1.0, -1.0]), f"{VMF} tu2016"),
    (VonMisesFisherMixture(entmax_alpha=1.5), f"{VMF} sklaviadis"),
    (VonMisesFisherMixture(init_params="k-means++"), f"{VMF} arthur2007"),
    (VonMisesFisherMixture(init_params=[0, 1]), VMF),
    (SparseGaussianMixture(), "dempster1977 tu2016"),
    (SparseGaussianMixture(fixed=("weights",)), "dempster1977"),
    (SparseGaussianMixture(entmax_alpha=2.0), "dempster1977 sklaviadis"),
    (StudentTMixture(), "dempster1977 peel2000 liu1995"),
    (StudentTMixture(degrees_of_freedom=[3.0]), "dempster1977 peel2000"),
    (RelativeGMM(weight_concentration_prior=1), "dempster1977 esser"),
    (ComponentPath(StudentTMixture()), "ward1963 birge2007 dempster1977 peel2000 liu1995"),
    (ComponentPath(VonMisesFisherMixture(), criterion="icl"), f"ward1963 biernacki2000 {VMF}"),
    (ComponentPath(VonMisesFisherMixture(), criterion=min), f"ward1963 {VMF}"),
    (FisherVectorTransformer(), "zhang2018 sanchez2013"),
    (FisherVectorTransformer(StudentTMixture()), "sanchez2013 dempster1977 peel2000 liu1995"),
    (DirectionWhitener(), "su2021"),
    (DependencyModelWithValence(), "klein2004"),
    (DependencyModelWithValence(weight_concentration_prior=0.5), "tu2016 klein2004"),
    (DependencyModelWithValence(inference="mean-field"), "klein2004 kurihara2004"),
]


@pytest.mark.parametrize(("estimator", "keys"), CASES, ids=str)
def test_methods_that_parameters_use_are_cited(estimator, keys):
    text = estimator.citation()
    assert re.findall(r"^@\w+{(\w+),$", text, re.MULTILINE) == ["skvmf", *keys.split()]
    assert f"version = {{{__version__}}}" in text
    assert text.count("{") == text.count("}")


def test_networks_cite_their_papers():
    pytest.importorskip("torch", reason="needs PyTorch: pip install 'skvmf[neural]'")
    from skvmf import neural

    assert "@inproceedings{kingma2014," in neural.FenchelYoungVAE().citation()
    assert "@inproceedings{miao2016," in neural.FenchelYoungDocumentModel().citation()


def test_every_entry_is_cited_by_some_estimator():
    text = (ROOT / "skvmf" / "_citation.bib").read_text(encoding="utf-8")
    known = set(re.findall(r"^@\w+{(\w+),$", text, re.MULTILINE))
    cited = {key for _, keys in CASES for key in keys.split()}
    assert known == cited | {"skvmf", "kingma2014", "miao2016"}
    assert all(re.search(r"title = .*author = ", entry, re.DOTALL) for entry in text.split("\n\n"))
