"""Figures are closed after each test."""

import pytest


@pytest.fixture(autouse=True)
def plt():
    plt = pytest.importorskip("matplotlib.pyplot")
    yield plt
    plt.close("all")
