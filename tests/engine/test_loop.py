"""The loop itself, on a model that halves its distance to the top."""

import pytest

from skvmf._engine.em import run_em


class Halving:
    """Parameters are the distance to the maximum; rows are not needed."""

    def expect(self, params, block):
        return params

    def lower_bound(self, stats, params):
        return -params

    def maximize(self, stats, params, rows):
        return params / 2

    def comparable(self, before, after):
        return after not in self.moved

    moved = ()


class NoRows:
    def map_reduce(self, function):
        return function(None)


@pytest.mark.parametrize("n", [0, 5])
def test_bound_is_that_of_the_parameters_returned(n):
    result = run_em(Halving(), NoRows(), 1.0, max_iter=n, tol=0)
    assert result.params == 2**-n
    assert result.bounds == [-1 / 2**i for i in range(n + 1)]
    assert (result.n_iter, result.converged) == (n, False)
    with pytest.raises(ValueError, match="max_iter"):
        run_em(Halving(), NoRows(), 1.0, max_iter=-1, tol=1)


def test_tolerance_is_a_change_of_the_bound_where_no_component_is_moved():
    model = Halving()
    result = run_em(model, NoRows(), 1.0, max_iter=100, tol=0.1)
    assert result.converged
    assert result.n_iter == 4  # 1/8 - 1/16 is the first change below 0.1
    assert result.bounds[-1] == -1 / 16
    model.moved = (1 / 16, 1 / 32)
    assert run_em(model, NoRows(), 1.0, max_iter=100, tol=0.1).n_iter == 6


def test_watcher_can_stop():
    seen = []

    def watch(n_iter, bounds, params):
        seen.append((n_iter, bounds[-1], params))
        return n_iter == 2

    result = run_em(Halving(), NoRows(), 1.0, max_iter=9, tol=0, on_iteration=watch)
    assert result.n_iter == 2
    assert result.stopped
    assert not result.converged
    assert seen == [(0, -1.0, 1.0), (1, -0.5, 0.5), (2, -0.25, 0.25)]
