"""What somebody with a type checker writes: tests/test_typing.py checks it and runs it."""

import numpy as np

from skvmf import (
    FisherVectorTransformer,
    RelativeGMM,
    SparseGaussianMixture,
    StudentTMixture,
    VonMisesFisherMixture,
)
from skvmf.distributions import modified_dirichlet, simplex, vonmises_fisher
from skvmf.grammar import DependencyModelWithValence

X = np.random.default_rng(0).normal(size=(50, 3))
X /= np.linalg.norm(X, axis=1, keepdims=True)
mixture = VonMisesFisherMixture(3, random_state=0).fit(X)
labels: np.ndarray[tuple[int, ...], np.dtype[np.intp]] = mixture.predict(X)
total: float = mixture.score(X) + mixture.bic(X)
rows, names = mixture.sample(4)
mixture.fit(X, sample_weight=np.ones(50)).predict_proba(X)
SparseGaussianMixture(2, covariance_type="diag").fit(X).responsibilities(X)
RelativeGMM(2).fit(X[:, :1]).score_samples(X[:, :1])
StudentTMixture(2, degrees_of_freedom=3.0).fit(X).means_.sum()
FisherVectorTransformer(mixture).fit_transform([X, X])
simplex.entmax(X, 1.5).sum()
vonmises_fisher.logpdf(X, X[0], 3.0)
modified_dirichlet.mode([3.0, 0.5], 0.1)
DependencyModelWithValence().fit([["A", "B"]]).predict([["A"]])
