"""What `FisherVectorTransformer` needs from a mixture."""

from collections.abc import Mapping

from sklearn.utils.validation import check_is_fitted

from .._engine.contracts.model_parts import AnyFamily
from .._engine.data.base import RowSource
from .._engine.em.fisher_scores import VectorModel
from .._typing import Array
from ._predictions import MixturePredictions


class VectorPredictions(MixturePredictions):
    """The protocol of mixtures whose gradients describe bags of vectors.

    Fisher vectors are computed from its two methods only. As in scikit-learn's protocols, names
    with underscores on both sides are neither public nor private to a mixture.
    """

    def __gradient_names__(self) -> Mapping[str, str]:
        """Return the kinds of parameters with gradients, each with the name of one of them.

        No fit is needed. Raises a ValueError if there are none.
        """
        self._validate_params()
        return self._family(2).gradients.names

    def __vector_model__(self) -> VectorModel:
        """Return the fit as bags of vectors need it."""
        check_is_fitted(self)
        self._validate_params()
        return VectorModel(self._fitted, self._posterior(), self._vector_rows)

    def _family(self, n_features: int) -> AnyFamily:
        """Return the family that the parameters describe, without what data adds."""
        raise NotImplementedError

    def _vector_rows(self, vectors: Array) -> RowSource:
        """Wrap vectors, as what predictions take; those of another size are refused."""
        if vectors.shape[1] == self._fitted.family.dim:
            return self._make_rows(vectors, None)
        return self._new_rows(vectors)
