"""Networks are trained here as everywhere in the tests: on one thread."""

import pytest


@pytest.fixture(scope="package", autouse=True)
def train_on_one_thread(one_torch_thread):
    return one_torch_thread
