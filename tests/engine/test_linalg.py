"""Products of tall matrices."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skvmf._engine.families import tiles
from skvmf._engine.families.tiles import MAX_UNCOPIED_PRODUCT, TILE_ROWS, tall_dot


@pytest.mark.parametrize("copies", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("d", "K"), [(1, 1), (50, 15), (70, 100), (100, 100), (80, 500)])
def test_product_in_tiles_is_the_product(d, K, dtype, copies, monkeypatch):
    monkeypatch.setattr(tiles, "always_copies", lambda: copies)
    rng = np.random.default_rng(0)
    most = MAX_UNCOPIED_PRODUCT // (d * K)
    matrix = rng.normal(size=(d, K)).astype(dtype)
    edges = {
        size + more for size in (most, TILE_ROWS) if size < 2000 for more in (-1, 0, 1, size + 3)
    }
    for n in sorted({0, 1, 300} | edges):
        X = rng.normal(size=(n, d)).astype(dtype)
        product = np.full((n, K), np.nan, dtype)
        tall_dot(X, matrix, product)
        tolerance = 50 * np.finfo(dtype).eps
        assert_allclose(product, X.astype(float) @ matrix, rtol=0, atol=tolerance * d**0.5)
