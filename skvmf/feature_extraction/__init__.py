"""Documents and images as vectors of fixed length, by means of a fitted mixture."""

from ._embeddings import embedding_table
from ._fisher_vector import FisherVectorTransformer

__all__ = ["FisherVectorTransformer", "embedding_table"]
