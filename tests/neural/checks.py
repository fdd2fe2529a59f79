"""Assertions about autoencoders."""

from numpy.testing import assert_array_equal


def weights(model):
    return [value.numpy() for value in model.network_.state_dict().values()]


def assert_same(a, b):
    """The networks of two models are one, bit by bit."""
    for one, other in zip(weights(a), weights(b), strict=True):
        assert_array_equal(one, other)
