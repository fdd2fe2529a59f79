"""A warning names the line of the user, whoever stands between."""

from functools import partial

import pytest

from skvmf import VonMisesFisherMixture


def through(module, function):
    """Return a function of a module of that name that calls another."""
    names = {"__name__": module, "function": function}
    exec(compile("def call():\n    function()", f"{module}.py", "exec"), names)
    return names["call"]


@pytest.mark.parametrize(
    ("modules", "file"),
    [
        (["skvmf._a"], __file__),
        (["skvmf._a", "sklearn.base", "joblib.parallel", "skvmf.grammar._b"], __file__),
        (["skvmf._a", "user", "sklearn.pipeline"], "user.py"),
        (["skvmf._a", "skvmfish"], "skvmfish.py"),
    ],
)
def test_the_line_is_the_first_outside_the_package_and_scikit_learn(modules, file):
    function = partial(VonMisesFisherMixture().__setstate__, {"_skvmf_version": "0.0"})
    for module in modules:
        function = through(module, function)
    with pytest.warns(UserWarning, match="was pickled with skvmf 0.0") as record:
        function()
    assert record[0].filename == file
