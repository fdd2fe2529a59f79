"""Small networks are fastest on one thread, most of all beside other work."""

import pytest


@pytest.fixture(scope="package", autouse=True)
def one_thread():
    torch = pytest.importorskip("torch", reason="needs torch: pip install 'skvmf[neural]'")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
