"""Fisher vectors: documents and images as vectors of fixed length."""

from ._bags import embedding_table
from ._fisher_vector import FisherVectorTransformer

__all__ = ["FisherVectorTransformer", "embedding_table"]
