"""Hostile but legal numbers: what is finite stays finite, or is refused with a message.

A longer run: FUZZ_FACTOR=80 pytest tests/neural/test_fuzz.py
"""

import copy
import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'skvmf[neural]'")

from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from skvmf.neural import (
    BetaGaussian,
    BinaryEntmaxLoss,
    EntmaxLoss,
    FenchelYoungDocumentModel,
    FenchelYoungVAE,
    binary_entmax,
    entmax,
)

from ..conftest import fuzzing
from .checks import assert_same

fuzz = fuzzing(25)
DTYPES = st.sampled_from([torch.float32, torch.float64])
ALPHAS = st.one_of(
    st.sampled_from([1.0, 1 + 1e-15, 1 + 1e-8, 4 / 3, 1.5, 2.0, 2 + 1e-9, 3.0, 50.0, 1e6]),
    st.floats(1, 12),
)
SIZES = st.sampled_from([0.0, 1e-300, 1e-30, 1e-7, 1e-3, 1.0, 10.0, 1e7, 1e30])


@st.composite
def tables(draw, max_rows=4, max_columns=7, signs=(-1, 1)):
    """Rows of numbers of all sizes: spread, equal, nearly equal, far from zero."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = draw(st.integers(1, max_rows)), draw(st.integers(1, max_columns))
    values = draw(SIZES) * rng.normal(size=shape)
    if draw(st.booleans()):
        values = np.round(values)
    if draw(st.booleans()):
        values[rng.random(shape) < 0.3] = draw(SIZES) * draw(st.sampled_from(signs))
    return values + draw(SIZES) * draw(st.sampled_from(signs))


def tensor(values, dtype):
    return torch.tensor(values, dtype=dtype, requires_grad=True)


@fuzz
@given(tables(), ALPHAS, DTYPES)
def test_entmax(values, alpha, dtype):
    scores, eps = tensor(values, dtype), torch.finfo(dtype).eps
    p = entmax(scores, alpha)
    assert ((p >= 0) & (p <= 1 + eps)).all()
    torch.testing.assert_close(p.sum(-1), torch.ones(len(p), dtype=dtype), rtol=0, atol=8 * eps)
    order = scores.detach().argsort(-1)
    # larger score, larger share
    assert (p.detach().gather(-1, order).diff(dim=-1) >= -4 * eps).all()
    moved = entmax(scores.detach().flip(-1), alpha).flip(-1)
    torch.testing.assert_close(moved, p.detach(), rtol=0, atol=8 * eps)
    weights = torch.linspace(-1, 2, p.shape[1], dtype=dtype)
    (grad,) = torch.autograd.grad((p * weights).sum(), scores)
    assert grad.isfinite().all()
    q = binary_entmax(scores, alpha)
    assert ((q >= 0) & (q <= 1)).all()
    (grad,) = torch.autograd.grad(q.sum(), scores)
    assert (grad.isfinite() & (grad >= 0)).all()


@fuzz
@given(tables(), st.integers(0, 2**32 - 1), ALPHAS, DTYPES)
def test_losses(values, seed, alpha, dtype):
    rng = np.random.default_rng(seed)
    target = rng.dirichlet(np.full(values.shape[1], 0.3), len(values))
    scores, target = tensor(values, dtype), torch.tensor(target, dtype=dtype)
    for kind in (EntmaxLoss, BinaryEntmaxLoss):
        loss = kind(alpha, reduction="none")(scores, target)
        assert (loss.isfinite() & (loss >= 0)).all()
        (grad,) = torch.autograd.grad(loss.sum(), scores)
        assert (grad.abs() <= 1 + 1e-6).all()


@fuzz
@given(tables(), st.sampled_from([1e-15, 1e-5, 0.1, 1.0, 30.0, 1e8]), ALPHAS, DTYPES, st.booleans())
def test_beta_gaussian(values, size, alpha, dtype, event):
    loc = tensor(values, dtype)
    spread = torch.linspace(0.5, 2, values.shape[1], dtype=dtype)
    scale = (size * spread).expand(values.shape).clone().requires_grad_()
    bell = BetaGaussian(loc, scale, alpha, event_dim=int(event), validate_args=True)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        draws = bell.rsample((20,))
    assert bell.support.check(draws.detach()).all()
    assert draws.isfinite().all()
    inside = loc.detach() + 0.3 * bell.variance.detach().sqrt()
    at_center, nearby = (bell.log_prob(z) for z in (loc.detach(), inside))
    assert at_center.isfinite().all()
    assert (nearby <= at_center).all()
    divergence = bell.fenchel_young_divergence(loc.detach(), 2 * scale.detach())
    numbers = [bell.variance, bell.tsallis_negentropy(), divergence, at_center, draws]
    for number in numbers:
        assert number.isfinite().all()
        grads = torch.autograd.grad(
            number.sum(), [loc, scale], retain_graph=True, materialize_grads=True
        )
        # of widths of 1e-15 some derivatives are beyond float32
        assert all((grad.isfinite() if size > 1e-9 else ~grad.isnan()).all() for grad in grads)


@st.composite
def models(draw):
    """An autoencoder of some kind and rows that it takes."""
    options = {
        "n_components": draw(st.integers(1, 3)),
        "beta": draw(st.sampled_from([0.0, 1e-6, 1.0, 100.0])),
        "hidden_layer_sizes": draw(st.sampled_from([(), (1,), (5,), (4, 3)])),
        "batch_size": draw(st.sampled_from([1, 3, 1000])),
        "learning_rate": draw(st.sampled_from([1e-30, 1e-3, 0.1, 10.0])),
        "max_epochs": draw(st.integers(0, 3)),
        "early_stopping": draw(st.booleans()),
        "entmax_alpha": draw(ALPHAS),
        "random_state": draw(st.integers(0, 2**32 - 1)),
    }
    rows = np.abs(draw(tables(max_rows=9, signs=(0, 1))))
    if draw(st.booleans()):
        options["target"] = draw(st.sampled_from(["counts", "proportions"]))
        options["alternating_epochs"] = draw(st.sampled_from([None, 1, 2]))
        return FenchelYoungDocumentModel(**options), rows
    options["latent"] = draw(st.sampled_from(["gaussian", "triweight", "biweight", "epanechnikov"]))
    options["observation"] = draw(st.sampled_from(["bernoulli", "binary-entmax"]))
    return FenchelYoungVAE(**options), rows / max(1, rows.max())


@fuzz
@given(models())
def test_autoencoders(case):
    model, rows = case
    before = copy.deepcopy(rows)
    try:
        model.fit(rows)
    except ValueError as refusal:
        message = str(refusal)
        assert any(part in message for part in ("diverged", "nothing is left", "too large"))
        assert not hasattr(model, "n_features_in_")
        return
    assert model.n_epochs_ <= model.max_epochs
    assert np.isfinite(model.losses_).all()
    assert np.isfinite(model.validation_losses_).all()
    coordinates = model.transform(rows)
    assert np.isfinite(coordinates).all()
    assert np.isfinite(model.score(rows))
    for observed in (model.inverse_transform(coordinates), model.sample(3)):
        assert ((observed >= 0) & (observed <= 1 + 1e-6)).all()
    assert_same(pickle.loads(pickle.dumps(model)), model)
    assert_same(clone(model).fit(rows), model)
    with pytest.raises(ValueError, match="is expecting"):
        model.transform(np.zeros((2, rows.shape[1] + 1)))
    np.testing.assert_array_equal(rows, before)
