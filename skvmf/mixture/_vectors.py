"""What `FisherVectorTransformer` asks of a mixture."""

from collections.abc import Mapping

from sklearn.utils.validation import check_is_fitted

from .._engine.contracts.model_parts import Family
from .._engine.data.base import RowSource
from .._engine.em.fisher_scores import VectorModel
from .._typing import Array
from ._predictions import MixturePredictions


class VectorPredictions(MixturePredictions):
    """The protocol of mixtures whose gradients describe bags of vectors.

    Its two methods are all that Fisher vectors are made from. They have underscores on both
    sides, as those of scikit-learn's protocols: they are neither public nor a mixture's own
    affair. Which gradients there are is for the family to say.
    """

    def __gradient_names__(self) -> Mapping[str, str]:
        """Return the kinds of parameters with gradients, each with the name of one of them.

        No fit is needed. Raises a ValueError where there are none.
        """
        self._validate_params()
        return self._family(2).gradients.names

    def __vector_model__(self) -> VectorModel:
        """Return the fit as bags of vectors see it."""
        check_is_fitted(self)
        self._validate_params()
        return VectorModel(self._fitted, self._posterior(), self._vector_rows)

    def _family(self, n_features: int) -> Family:
        """Return the family that the parameters describe, without what data adds."""
        raise NotImplementedError

    def _vector_rows(self, vectors: Array) -> RowSource:
        """Wrap vectors, as what predictions take; those of another size are refused."""
        if vectors.shape[1] == self._fitted.family.dim:
            return self._make_rows(vectors, None)
        return self._new_rows(vectors)
