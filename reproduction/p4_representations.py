"""P4, documents as vectors: collections, baselines and Fisher vectors."""

import gzip
import json
import re
import zlib

import numpy as np
from sklearn.decomposition import LatentDirichletAllocation, TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.preprocessing import normalize

from skvmf import FisherVectorTransformer, SparseGaussianMixture, VonMisesFisherMixture
from skvmf.feature_extraction import embedding_table

from .texts import read

N_COMPONENTS = 15
N_DIMS = 50


# Collections


def tokens(text):
    """Return the lower-case runs of letters."""
    return re.findall("[a-z]+", text.lower())


def cut(texts, dropped=()):
    """Return the words of texts but those to be dropped."""
    return [[word for word in tokens(text) if word not in dropped] for text in texts]


def stop_words(folder):
    """Return the SMART stop words, cut as texts are."""
    return set(tokens((folder / "stoplist_smart.txt").read_text(encoding="utf-8")))


def sentences(path):
    """Return labelled sentences: Subj, or MR."""
    documents = read(path)
    return [d["text"] for d in documents], np.array([d["label"] for d in documents])


def judged(folder, name):
    """Return documents, queries, and which documents are relevant to each query that has some."""
    own = folder / f"{name}.jsonl.gz"
    documents = read(own if own.exists() else folder / "classic3.jsonl.gz")
    documents = [d for d in documents if d["label"] == name]
    with gzip.open(folder / f"{name}_queries_qrels.json.gz", "rt", encoding="utf-8") as file:
        judgements = json.load(file)
    column = {d["id"]: i for i, d in enumerate(documents)}
    relevant = np.zeros((len(judgements["queries"]), len(documents)), dtype=bool)
    for row, query in enumerate(judgements["queries"]):
        for document, grade in judgements["qrels"][str(query["id"])].items():
            relevant[row, column[document]] = grade >= 1
    asked = [query["text"] for query in judgements["queries"]]
    kept = np.flatnonzero(relevant.any(axis=1))
    return [d["text"] for d in documents], [asked[row] for row in kept], relevant[kept]


# Trained vectors


def kept(cache, name, texts, settings, train):
    """Return what ``train`` gives, from a file if it has been trained on these texts before."""
    number = zlib.crc32("\n".join([*texts, repr(sorted(settings.items()))]).encode())
    path = None if cache is None else cache / f"{name}-{number}.npz"
    if path is not None and path.exists():
        return dict(np.load(path))
    arrays = train()
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(path, **arrays)
    return arrays


def word_vectors(texts, dropped=(), cache=None, name="words", **settings):
    """Return the words of texts and their word2vec vectors, skip-gram on the texts themselves."""
    from gensim.models import Word2Vec

    settings = {"vector_size": N_DIMS, "sg": 1, "negative": 5, "workers": 1} | settings

    def train():
        words, vectors = embedding_table(Word2Vec(cut(texts, dropped), **settings).wv)
        return {"words": np.array(words), "vectors": vectors}

    stored = kept(cache, name, texts, settings, train)
    return stored["words"].tolist(), stored["vectors"]


def paragraph_vectors(texts, dm, dropped=(), cache=None, name="paragraphs", **settings):
    """Return a vector for each text: PV-DM, or PV-DBOW."""
    from gensim.models.doc2vec import Doc2Vec, TaggedDocument

    settings = {"vector_size": N_DIMS, "dm": int(dm), "negative": 5, "workers": 1} | settings

    def train():
        documents = [TaggedDocument(own, [i]) for i, own in enumerate(cut(texts, dropped))]
        return {"vectors": Doc2Vec(documents, **settings).dv.vectors}

    return kept(cache, name, texts, settings, train)["vectors"]


# Representations


def counter(words):
    """Return a vectorizer whose columns are the given words."""
    return CountVectorizer(vocabulary=words, token_pattern="[a-z]+", dtype=np.float32)


def frequent(texts, dropped=(), n_words=5000):
    """Return counts of the most frequent words."""
    vectorizer = CountVectorizer(
        max_features=n_words,
        token_pattern="[a-z]+",
        stop_words=sorted(dropped) or None,
        dtype=np.float64,
    )
    return vectorizer.fit_transform(texts), vectorizer


def tf_idf(counts):
    """Return tf-idf rows of unit length."""
    return TfidfTransformer(sublinear_tf=True).fit_transform(counts)


def lsi(rows, seed=0, n_dims=N_DIMS):
    """Return latent semantic indexing."""
    n_dims = min(n_dims, min(rows.shape) - 1)
    return normalize(TruncatedSVD(n_dims, random_state=seed).fit_transform(rows))


def lda(counts, seed=0):
    """Return the topics of latent Dirichlet allocation."""
    model = LatentDirichletAllocation(N_DIMS, learning_method="online", random_state=seed)
    return model.fit_transform(counts)


def averaged(counts, vectors):
    """Return mean word vectors."""
    return np.asarray(counts @ vectors) / np.maximum(np.asarray(counts.sum(axis=1)), 1)


def fisher(vectors, seed, n_components=N_COMPONENTS, **options):
    """Return FV-moVMF over word vectors; over those of LSI where there are none."""
    mixture = VonMisesFisherMixture(n_components)
    return FisherVectorTransformer(mixture, embeddings=vectors, random_state=seed, **options)


def fisher_gaussian(vectors, seed, n_components=N_COMPONENTS, **options):
    """Return FV-GMM over word vectors; over those of LSI where there are none."""
    mixture = SparseGaussianMixture(
        n_components, covariance_type="diag", weight_concentration_prior=1.0
    )
    return FisherVectorTransformer(mixture, embeddings=vectors, random_state=seed, **options)
