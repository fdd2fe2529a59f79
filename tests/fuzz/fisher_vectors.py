"""Cases of the Fisher vector transformer, and what it promises whatever it is given."""

from dataclasses import dataclass, field, replace

import numpy as np
from scipy import sparse
from sklearn.utils import gen_batches

import skvmf

from .common import Case, Subject
from .data import Data, resolve
from .runs import refusing
from .subjects import CLOSE, assert_finite, assert_refused_or_fitted, public


@dataclass(frozen=True)
class FisherVectorCase(Case):
    """A transformer of counts, or of arrays of vectors if `lengths` says how long they are."""

    params: dict = field(default_factory=dict)
    mixture: str | None = None
    mixture_params: dict = field(default_factory=dict)
    vectors: Data = Data()
    documents: Data = Data("counts", n=8)
    lengths: tuple[int, ...] | None = None
    own_vectors: bool = True

    def subject(self):
        return FisherVectorSubject(self)


class FisherVectorSubject(Subject):
    """A fitted transformer with its documents."""

    def __init__(self, case):
        self.case, self.vectors = case, case.vectors.dense()
        self.params = {"random_state": 0} | case.params
        if case.mixture is not None:
            options = resolve({"random_state": 0} | case.mixture_params, self.vectors)
            self.params["mixture"] = getattr(skvmf, case.mixture)(**options)
        if case.lengths is None:
            self.X = replace(case.documents, d=len(self.vectors)).make()
            if case.own_vectors:
                self.params["embeddings"] = self.vectors
        else:
            ends = np.cumsum(case.lengths)
            vectors = np.resize(self.vectors, (ends[-1], case.vectors.d))
            self.X = list(np.split(vectors, ends[:-1]))
        self.transformer = self.estimator = self.fit(self.new())
        self.features = refusing(self.transformer.transform, self.X)

    def new(self):
        return skvmf.FisherVectorTransformer(**self.params)

    def fit(self, transformer):
        return refusing(transformer.fit, self.X)

    def state(self, transformer):
        learnt = public(transformer.mixture_) | {"embeddings_": transformer.embeddings_}
        return learnt | {"features": refusing(transformer.transform, self.X)}

    def inputs(self):
        if self.case.lengths is None:
            yield self.X, replace(self.case.documents, d=len(self.vectors)).make()

    @property
    def slack(self):
        """Rounding of the features, relative to the largest; concentrations make it grow."""
        dtypes = [self.vectors.dtype.name, self.features.dtype.name]
        largest = max(1e-300, float(np.abs(self.features).max()))
        kappa = np.max(getattr(self.transformer.mixture_, "concentrations_", 0))
        close = max(CLOSE[dtype] for dtype in dtypes)
        return largest * max(close, 4 * np.finfo(np.float64).eps * kappa)

    @property
    def n_documents(self):
        return self.X.shape[0] if self.case.lengths is None else len(self.X)

    def part(self, span):
        return self.X[span]


def finite_in_finite_out(subject):
    assert_finite({"features": subject.features} | public(subject.transformer.mixture_))


def features_have_names(subject):
    names = subject.transformer.get_feature_names_out()
    assert subject.features.shape == (subject.n_documents, len(names))
    assert len(set(names)) == len(names)


def rows_have_unit_length(subject):
    if subject.params.get("norm", "l2") is None:
        return
    lengths = np.linalg.norm(subject.features.astype(np.float64), axis=1)
    slack = CLOSE[subject.features.dtype.name]
    assert ((lengths == 0) | (np.abs(lengths - 1) < slack)).all(), lengths


def empty_documents_are_zero(subject):
    if subject.case.lengths is None:
        n = subject.n_documents
        counts = sparse.csr_array(subject.X, copy=True)  # abs() sorts what it is given
        empty = np.asarray(abs(counts).sum(axis=1)).ravel() == 0
        assert not subject.features[np.arange(n)[empty]].any()


def a_document_does_not_see_the_others(subject):
    alone = [
        subject.transformer.transform(subject.part(span))
        for span in gen_batches(subject.n_documents, 1)
    ]
    np.testing.assert_allclose(np.vstack(alone), subject.features, atol=subject.slack)


def sparse_is_dense(subject):
    if subject.case.lengths is None and subject.case.documents.is_sparse:
        dense = replace(subject.case.documents, d=len(subject.vectors)).dense()
        features = subject.transformer.transform(dense)
        np.testing.assert_allclose(features, subject.features, atol=subject.slack)


def a_refused_fit_changes_nothing(subject):  # the last, for it fits again
    n, d = len(subject.vectors), subject.case.vectors.d
    mistakes = [
        (np.full((3, n), -1.0), {}),
        (np.full((3, n), np.nan), {}),
        (np.ones((3, n + 1)), {}),
        ([np.ones((2, d)), np.ones((2, d + 1))], {"embeddings": None}),
        ([np.full((2, d), np.nan)], {"embeddings": None}),
        (subject.X, {"gradients": ("colours",)}),
        (subject.X, {"mixture": "a name"}),
        (subject.X, {"power": 2.0}),
    ]
    assert_refused_or_fitted(subject, [([X], changed) for X, changed in mistakes])
