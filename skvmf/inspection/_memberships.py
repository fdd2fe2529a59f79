"""Whether memberships hold: what they say beside what other fits say, and the surest rows alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.utils import Bunch

from .._engine.em.calibration import Judged, Reliability, reliability
from .._typing import MatrixLike, RandomState
from ..distributions._arguments import check_count
from ..mixture._base import BaseMixture
from ..mixture._calibration import N_BINS, judged_rows
from ..mixture._rows import array_in_memory, in_memory
from ._pipeline import split_pipeline


def refuse_others(mixture: object) -> None:
    if not isinstance(mixture, BaseMixture):
        raise TypeError(f"mixture should be a mixture of skvmf, got {type(mixture).__name__}.")


def membership_reliability(
    mixture: BaseMixture,
    X: MatrixLike,
    *,
    n_bins: int = N_BINS,
    n_resamples: int = 3,
    sample_weight: ArrayLike | None = None,
    known_labels: ArrayLike | None = None,
    random_state: RandomState = None,
) -> Bunch:
    """Compare what memberships say with what other fits of such rows say.

    The other fits are those of :meth:`~skvmf.SparseGaussianMixture.calibrate`: from new starts, to
    rows drawn with replacement. They judge rows that they have not drawn. If a row's largest
    membership is 0.9, they should give that component 0.9, too, on average over such rows.

    Parameters
    ----------
    mixture : VonMisesFisherMixture, SparseGaussianMixture, StudentTMixture or RelativeGMM
        A fitted mixture, or a pipeline that ends with one: `X` is then what its first step takes.
        It stays as it is.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The rows of the fit, or a sample of them.
    n_bins : int, default=15
        Number of bins. They have about the same weight; equal memberships are in one.
    n_resamples : int, default=3
        Number of fits.
    sample_weight : array-like of shape (n_samples,), default=None
        The weights of the rows in the fit.
    known_labels : array-like of shape (n_samples,), default=None
        The component of each row where it is known. These then judge, as in ``calibrate``.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the draws and of the starts.

    Returns
    -------
    reliability : :class:`~sklearn.utils.Bunch`
        The entries are

        before, after : :class:`~sklearn.utils.Bunch`
            Of memberships as the fit has them, and at `membership_temperature_`, as `calibrate`
            has left it. Both have the entries `prob_pred`, the mean largest memberships of the bins
            (n_bins,); `prob_true`, what other fits say on average of the same components (n_bins,);
            `weights` of the bins, which add up to one (n_bins,); `error`, the expected calibration
            error, which is the mean difference of the two; and `log_loss` in nats per row, where no
            membership counts as less than 1e-6.
        temperature : float
            The mixture's `membership_temperature_`.

    Raises
    ------
    TypeError, ValueError
        If the mixture is not one of skvmf, or its memberships have exact zeros, or the rows are too
        few or a Dask array.

    Examples
    --------
    >>> import numpy as np
    >>> from skvmf import SparseGaussianMixture
    >>> from skvmf.inspection import membership_reliability
    >>> X = np.random.default_rng(0).normal(size=(500, 20)) * np.arange(20)
    >>> mixture = SparseGaussianMixture(5, covariance_type="diag", random_state=0).fit(X)
    >>> mixture = mixture.calibrate(X, random_state=0)
    >>> reliability = membership_reliability(mixture, X, random_state=1)
    >>> bool(reliability.after.error < reliability.before.error)
    True
    """
    mixture, X, _ = split_pipeline(mixture, X)
    refuse_others(mixture)
    check_count(n_bins, "n_bins")
    judged = judged_rows(mixture, X, n_resamples, sample_weight, known_labels, random_state)
    return before_and_after(judged, mixture.membership_temperature_, n_bins)


def before_and_after(judged: Sequence[Judged], temperature: float, n_bins: int = N_BINS) -> Bunch:
    """Return what `membership_reliability` does."""
    before = Bunch(**asdict(reliability(judged, 1.0, n_bins)))
    after = Bunch(**asdict(reliability(judged, temperature, n_bins)))
    return Bunch(before=before, after=after, temperature=temperature)


def reliability_in_words(mixture: Any) -> str | None:
    """Return how memberships of a calibrated mixture hold, in a sentence; None for others."""
    found: Reliability | None = getattr(mixture, "_skvmf_reliability", None)
    if found is None:
        return None
    said = float((found.weights * found.prob_pred).sum())
    held = float((found.weights * found.prob_true).sum())
    return (
        f"memberships at temperature {mixture.membership_temperature_:.2f}: largest ones of "
        f"{said:.2f} on average, where other fits say {held:.2f} (calibration error "
        f"{found.error:.2f})"
    )


def coverage_curve(mixture: Any, X: MatrixLike, y: ArrayLike, *, n_points: int = 20) -> Bunch:
    """Tell how well clusters agree with labels if only the surest rows are kept.

    Clusterers that leave rows out have one such point; a mixture has a curve. Rows are kept by
    their largest membership. Both scores are those of the kept rows alone, and fewer rows score
    higher: compare at the same share.

    Parameters
    ----------
    mixture : estimator instance
        A fitted mixture, or anything else with `predict` and `predict_proba`. After `calibrate`,
        the order is that at its temperature.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The rows; Dask arrays are read into memory.
    y : array-like of shape (n_samples,)
        A class for each row.
    n_points : int, default=20
        Number of shares, evenly spaced up to all rows. Rows with equal memberships are kept
        together, so there may be fewer.

    Returns
    -------
    curve : :class:`~sklearn.utils.Bunch`
        The entries are

        shares : ndarray of shape (n_points,)
            The share of rows kept; the last is 1.
        memberships : ndarray of shape (n_points,)
            The least membership among them. Outliers, with the label -1, have 0: they come last,
            and count as a cluster.
        ari, nmi : ndarray of shape (n_points,)
            The adjusted Rand index and the normalized mutual information of labels and `y`.

    Raises
    ------
    ValueError
        If there is not one class per row, or `n_points` is not a positive whole number.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from skvmf import VonMisesFisherMixture
    >>> from skvmf.inspection import coverage_curve
    >>> X, y = load_digits(return_X_y=True)
    >>> mixture = VonMisesFisherMixture(10, random_state=0).fit(X).calibrate(X, random_state=0)
    >>> curve = coverage_curve(mixture, X, y, n_points=2)
    >>> bool(curve.ari[0] > curve.ari[1])
    True
    """
    check_count(n_points, "n_points")
    X = in_memory(X)
    y = array_in_memory(y, "y")
    labels = np.asarray(mixture.predict(X))
    if y.shape != labels.shape:
        raise ValueError(f"y should be of shape {labels.shape}, got {y.shape}.")
    # Outliers have no component to be sure of.
    largest = np.where(labels < 0, 0, np.max(mixture.predict_proba(X), axis=1))
    n_rows = len(labels)
    numbers = np.ceil(np.arange(1, n_points + 1) / n_points * n_rows).astype(np.int64)
    # Equal memberships give no order: rows that have them are kept or left together.
    least = np.unique(np.sort(largest)[n_rows - numbers])[::-1]
    kept = [largest >= each for each in least]
    return Bunch(
        shares=np.array([each.mean() for each in kept]),
        memberships=least,
        ari=np.array([adjusted_rand_score(y[each], labels[each]) for each in kept]),
        nmi=np.array([normalized_mutual_info_score(y[each], labels[each]) for each in kept]),
    )
