"""Hostile but legal corpora and priors: what is finite stays finite, and the bound never falls.

A longer run: SKVMF_FUZZ=5000 pytest tests/grammar/test_fuzz.py
"""

import os
import pickle
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from skvmf.grammar import DependencyModelWithValence

from ..conftest import CI
from .enumeration import is_projective_tree

N_CASES = int(os.environ.get("SKVMF_FUZZ", 60 if CI else 20))
TAGS = ["A", "B", "C", "D"]


def sentences(max_length):
    return st.integers(1, 4).flatmap(
        lambda n: st.lists(st.sampled_from(TAGS[:n]), min_size=1, max_size=max_length)
    )


@st.composite
def corpora(draw):
    """Few sentences, short or long, each perhaps many times."""
    kind = draw(st.sampled_from(["one word", "one tag", "any", "long"]))
    if kind == "one word":
        return [["A"]] * draw(st.integers(1, 3))
    if kind == "one tag":
        return [["A"] * n for n in draw(st.lists(st.integers(1, 40), min_size=1, max_size=4))]
    X = draw(st.lists(sentences(7), min_size=1, max_size=5))
    if kind == "long":
        return [*X, (draw(sentences(5)) * 50)[:50]]
    return X * draw(st.sampled_from([1, 1, 30]))


@st.composite
def options(draw):
    """Constructor parameters that a fit takes, far out ones among them."""
    inference = draw(st.sampled_from(["map", "mean-field"]))
    sizes = [1e-290, 1e-9, 0.3, 1.0, 1 + 1e-15, 2.0, 1e3, 1e15]
    if inference == "map":
        sizes += [0.0, -1e-300, -1.0, -40.0, -1e15, 1 - 1e-15]
    concentration = draw(st.sampled_from(sizes))
    floors = [1e-300, 1e-17, 1e-4, 0.2, 0.25]
    if concentration >= 1:
        floors.append(0.0)
    return {
        "inference": inference,
        "init": draw(st.sampled_from(["harmonic", "random"])),
        "distance_power": draw(st.sampled_from([0.0, 1.0, 2.0, 100.0, 1e308])),
        "weight_concentration_prior": concentration,
        "weight_floor": draw(st.sampled_from(floors)),
        "temperature": draw(st.sampled_from([0.0, 5e-13, 2e-12, 1e-3, 0.5, 1.0, 3.0, 1e300])),
        "tags": draw(st.sampled_from([None, TAGS])),
        "unknown_tags": "average",
        "tol": 0.0,
        "max_iter": draw(st.sampled_from([0, 1, 6])),
        "random_state": draw(st.integers(0, 9)),
    }


def fit(X, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        return DependencyModelWithValence(**parameters).fit(X)


@settings(
    max_examples=N_CASES,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
@given(corpora(), options())
def test_any_legal_fit_keeps_the_promises(X, parameters):
    model = fit(X, **parameters)
    check_the_bound(model)
    check_the_rules(model, parameters)
    check_predictions(model, X)
    check_copies(model, X)


def check_the_bound(model):
    bounds = np.array(model.lower_bounds_)
    assert np.isfinite(bounds).all() and model.lower_bound_ == bounds[-1]
    falls = -np.diff(bounds)
    assert (falls <= 1e-12 * np.maximum(1, np.abs(bounds[1:]))).all(), bounds


def check_the_rules(model, parameters):
    for log_prob in (model.root_log_prob_, model.stop_log_prob_, model.choose_log_prob_):
        assert not np.isnan(log_prob).any() and (log_prob <= 0).all()
        np.testing.assert_allclose(np.exp(log_prob).sum(axis=-1), 1, rtol=1e-12)
        if parameters["inference"] == "map" and log_prob.shape[-1] > 1:
            floor = np.array(parameters["weight_floor"])
            with np.errstate(divide="ignore"):
                assert (log_prob >= np.log(floor) - 1e-12).all()


def check_predictions(model, X):
    scores = model.score_samples(X)
    assert not np.isnan(scores).any() and (scores <= 1e-9).all()
    if model.inference == "mean-field" or model.weight_floor > 0 or model.temperature == 1:
        assert np.isfinite(scores).all()
    trees = model.predict([*X, ["new", "A"]])
    for sentence, heads in zip([*X, ["new", "A"]], trees, strict=True):
        assert len(heads) == len(sentence) and heads.dtype == np.int64
        if len(sentence) <= 50:
            assert is_projective_tree(tuple(heads.tolist()))
    if model.n_iter_ > 0 and (model.temperature, model.inference) == (1.0, "map"):
        log_prior = model.lower_bound_ - scores.mean()
        assert model.weight_concentration_prior != 1 or abs(log_prior) <= 1e-9


def check_copies(model, X):
    again = fit(X, **clone(model).get_params())
    revived = pickle.loads(pickle.dumps(model))
    for twin in (again, revived):
        np.testing.assert_array_equal(twin.score_samples(X), model.score_samples(X))
    assert again.lower_bounds_ == model.lower_bounds_


@pytest.mark.parametrize("inference", ["map", "mean-field"])
@pytest.mark.parametrize("temperature", [0.0, 0.1, 1.0])
def test_sentences_of_two_hundred_words(inference, temperature):
    X = [["A", "B", "A", "C", "B"] * 40, ["D"]]
    parameters = {"inference": inference, "weight_floor": 1e-4}
    model = fit(X, temperature=temperature, max_iter=3, unknown_tags="average", **parameters)
    check_the_bound(model)
    check_the_rules(model, parameters)
    check_predictions(model, X)
