"""What else is done with mixtures: checkpoints, Dask rows, narrow types, summaries, pictures."""

import os
import tempfile

import dask
import matplotlib.pyplot as plt
import numpy as np

import skvmf
from skvmf.inspection import component_summary
from skvmf.plotting import DirectionsDisplay, MixtureDisplay

from ..dask.data import chunked
from ..hooks import few_rows_in_blocks, killed_after, writing_at_once
from .data import cast
from .runs import Refused, refusing
from .subjects import assert_same, public

LAZY = ("labels_", "probabilities_")
READ_AS = {"float16": "float32", "int8": "float32", "uint8": "float32", "bool": "float64"}


def interrupted_fits_end_the_same(subject):
    X = subject.X
    with tempfile.TemporaryDirectory() as folder:
        path, n_writes = os.path.join(folder, "fit.npz"), 1 + subject.case.data.seed % 9
        begun = subject.new(checkpoint=path)
        with writing_at_once():
            killed_after(n_writes, lambda: refusing(begun.fit, X, **subject.rest))
        ended = subject.new(checkpoint=path).fit(X, **subject.rest)
    assert_same(public(subject.mixture), public(ended))
    moments = [mixture._running_statistics.moments for mixture in (subject.mixture, ended)]
    for mine, other in zip(*moments, strict=True):
        np.testing.assert_array_equal(mine, other)


def in_chunks(X, seed):
    """Return a Dask array of rows, in chunks of any lengths."""
    cuts = np.sort(np.random.default_rng(seed).integers(0, X.shape[0] + 1, size=3))
    return chunked(X, np.diff([0, *cuts, X.shape[0]]).tolist())


def dask_rows_are_rows_in_memory(subject):
    if subject.case.data.layout == "csc":
        return  # no format of blocks of rows
    lazy = in_chunks(subject.X, subject.case.data.seed)
    with few_rows_in_blocks(), dask.config.set(scheduler="synchronous"):
        mixture = subject.fit(subject.new())
        other = refusing(subject.new().fit, lazy, **subject.rest)
        expected, found = public(mixture), public(other)
        shares = [np.asarray(values.pop("probabilities_")) for values in (expected, found)]
        labels = [np.asarray(values.pop("labels_")) for values in (expected, found)]
        assert_same(expected, found)
        assert mixture.score(lazy) == mixture.score(subject.X)
    assert labels[0].shape == labels[1].shape
    if subject.is_smooth:  # else rounding of a matrix product may decide
        np.testing.assert_allclose(*shares, atol=1e-4)


def narrow_types_hold_the_same_rows(subject):
    """They are read as the type of float that holds them."""
    if subject.case.data.is_sparse or "missing_values" in subject.params:  # which is of floats
        return
    narrow = list(READ_AS)[subject.case.data.seed % len(READ_AS)]
    X = cast(subject.dense, narrow)
    found, told = [], []
    for values in (X, X.astype(READ_AS[narrow])):
        try:
            mixture = refusing(subject.new().fit, values, **subject.rest)
        except Refused as refusal:
            told.append(str(refusal))
        else:
            found.append(public(mixture) | {"score": mixture.score_samples(values)})
    assert len(found) != 1, told
    if found:
        assert_same(*found)


def summaries_are_whole(subject):
    mixture = subject.mixture
    for X in subject.all_rows:
        summary = component_summary(mixture, X)
        assert summary.sizes.sum() + summary.n_outliers == X.shape[0]
        assert (np.diff(summary.weights) <= 0).all()
        assert ((summary.overlaps >= 0) & (summary.overlaps <= 1 + 1e-9)).all(), summary.overlaps
        for names, size in zip(summary.typical, summary.sizes, strict=True):
            assert len(names) == min(3, size)
        assert len(str(summary).splitlines()) > len(summary.labels)
        assert "nan" not in summary._repr_html_()


def pictures_are_drawn(subject):
    mixture, X = subject.mixture, subject.X
    try:
        if isinstance(mixture, skvmf.VonMisesFisherMixture):
            display = DirectionsDisplay.from_estimator(mixture, X)
        else:
            display = MixtureDisplay.from_estimator(mixture, X)
        display.figure_.canvas.draw()
    finally:
        plt.close("all")
