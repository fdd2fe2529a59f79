"""Data for reduced runs."""

import pytest

from . import small_data


@pytest.fixture(scope="session")
def small_folder(tmp_path_factory):
    """Return a folder of small files in the formats of ``--data``."""
    folder = tmp_path_factory.mktemp("data")
    small_data.make(folder)
    return folder
