"""What somebody with a type checker writes: tests/test_typing.py checks it and runs it."""

import numpy as np

from skvmf import (
    FisherVectorTransformer,
    RelativeGMM,
    SparseGaussianMixture,
    StudentTMixture,
    VonMisesFisherMixture,
)
from skvmf.datasets import load_docstrings, make_vonmises_fisher_blobs
from skvmf.distributions import modified_dirichlet, simplex, vonmises_fisher
from skvmf.grammar import DependencyModelWithValence
from skvmf.model_selection import ComponentPath

X, y = make_vonmises_fisher_blobs(50, 3, centers=3, concentration=[5, 20, 80], random_state=0)
_, _, centers = make_vonmises_fisher_blobs(50, 3, return_centers=True)
mixture = VonMisesFisherMixture(n_components=3, random_state=0).fit(X)
order = np.argsort(mixture.concentrations_)
angles = np.degrees(np.arccos(np.linalg.norm(mixture.means_, axis=1)))[order].round().tolist()
sizes: int = mixture.labels_.size + mixture.probabilities_.size + mixture.n_iter_
converged: bool = mixture.converged_
labels: np.ndarray[tuple[int, ...], np.dtype[np.intp]] = mixture.predict(X)
total: float = mixture.score(X) + mixture.bic(X)
rows, names = mixture.sample(4)
mixture.fit(X, sample_weight=np.ones(50)).predict_proba(X)
mixture.set_params(tol=1e-4).set_output(transform="default").fit_transform(X)
VonMisesFisherMixture(2, init_params=y % 2, weight_concentration_prior=[1.0, 0.5]).fit(X.tolist())
ComponentPath(mixture, max_components=3, criterion="bic").fit(X).cut(2).max()
SparseGaussianMixture(2, covariance_type="diag").fit(X).responsibilities(X)
RelativeGMM(2).fit(X[:, :1]).score_samples(X[:, :1])
StudentTMixture(2, degrees_of_freedom=3.0).fit(X).means_.sum()
FisherVectorTransformer(mixture).fit_transform([X, X])
simplex.entmax(X, 1.5).sum()
vonmises_fisher.logpdf(X, X[0], 3.0)
modified_dirichlet.mode([3.0, 0.5], 0.1)
first: str = load_docstrings().data[0]
texts, modules = load_docstrings(return_X_y=True)
DependencyModelWithValence().fit([["A", "B"]]).predict([["A"]])
