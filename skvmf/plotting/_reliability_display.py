"""A reliability diagram of memberships, in the manner of scikit-learn's `CalibrationDisplay`."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Self

from numpy.typing import ArrayLike
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from .._typing import MatrixLike, Options, RandomState
from ..inspection import membership_reliability
from ..inspection._pipeline import split_pipeline
from ._displays import get_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..mixture._base import BaseMixture


@dataclass(eq=False, repr=False)
class ReliabilityDisplay:
    """Largest memberships beside what other fits say; create it with `from_estimator`.

    On the diagonal memberships hold; below it a mixture is too sure.

    Parameters
    ----------
    reliability : Bunch
        What :func:`~skvmf.inspection.membership_reliability` returns, or the `reliability` of
        :func:`~skvmf.inspection.component_stability`.
    estimator_name : str, default=None
        The name in the legend; None leaves it out.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Axes and figure of the picture.
    lines_ : list of matplotlib Line2D
        Memberships as the fit has them and, if the mixture is calibrated, at its temperature.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from skvmf import VonMisesFisherMixture
    >>> from skvmf.plotting import ReliabilityDisplay
    >>> X = load_digits().data
    >>> mixture = VonMisesFisherMixture(10, random_state=0).fit(X).calibrate(X, random_state=0)
    >>> display = ReliabilityDisplay.from_estimator(mixture, X, random_state=1)
    >>> len(display.lines_)
    2
    """

    reliability: Bunch
    _: KW_ONLY
    estimator_name: str | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseMixture,
        X: MatrixLike,
        *,
        n_bins: int = 15,
        n_resamples: int = 3,
        sample_weight: ArrayLike | None = None,
        known_labels: ArrayLike | None = None,
        random_state: RandomState = None,
        **kwargs: Any,
    ) -> Self:
        """Fit the mixture to other rows, and draw how its memberships hold.

        Parameters
        ----------
        estimator : estimator instance
            A fitted mixture, or a pipeline that ends with one.
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows of the fit, or a sample of them.
        n_bins : int, default=15
            Number of bins.
        n_resamples : int, default=3
            Number of fits.
        sample_weight : array-like of shape (n_samples,), default=None
            The weights of the rows in the fit.
        known_labels : array-like of shape (n_samples,), default=None
            The component of each row where it is known. These then judge.
        random_state : int, RandomState, Generator or None, default=None
            Seed of the draws and of the starts.
        **kwargs : dict
            Arguments of :meth:`plot`.

        Returns
        -------
        display : ReliabilityDisplay
            The display, drawn.
        """
        check_is_fitted(estimator)
        reliability = membership_reliability(
            estimator,
            X,
            n_bins=n_bins,
            n_resamples=n_resamples,
            sample_weight=sample_weight,
            known_labels=known_labels,
            random_state=random_state,
        )
        # A pipeline's name would say nothing.
        mixture, _, _ = split_pipeline(estimator, None)
        return cls(reliability, estimator_name=type(mixture).__name__).plot(**kwargs)

    def plot(
        self,
        *,
        ax: Axes | None = None,
        name: str | None = None,
        ref_line: bool = True,
        **kwargs: Any,
    ) -> Self:
        """Draw the diagram.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on; None creates new ones.
        name : str, default=None
            The name in the legend; None is `estimator_name`.
        ref_line : bool, default=True
            Whether to draw the diagonal.
        **kwargs : dict
            Arguments of ``Axes.plot`` for both lines.

        Returns
        -------
        display : ReliabilityDisplay
            The display, drawn.
        """
        self.ax_ = get_axes(ax)
        self.figure_ = self.ax_.figure
        if ref_line:
            self.ax_.plot([0, 1], [0, 1], "k:", label="memberships that hold")
        if name is None:
            name = self.estimator_name
        drawn = {"as fitted": self.reliability.before}
        # At temperature 1 both curves would be the same.
        if self.reliability.temperature > 1:
            drawn[f"at temperature {self.reliability.temperature:.1f}"] = self.reliability.after
        self.lines_ = []
        for label, curve in drawn.items():
            label = f"{label} (error {curve.error:.2f})"
            if name is not None:
                label = f"{name}, {label}"
            style: Options = {"marker": "s", "label": label}
            self.lines_ += self.ax_.plot(curve.prob_pred, curve.prob_true, **style | kwargs)
        self.ax_.set(xlabel="largest membership", ylabel="membership that other fits give")
        self.ax_.legend(loc="upper left")
        return self
