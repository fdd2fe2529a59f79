"""Floor 4: documents and images as vectors, by what a fitted mixture says of them."""

from ._embeddings import embedding_table
from ._fisher_vector import FisherVectorTransformer

__all__ = ["FisherVectorTransformer", "embedding_table"]
