"""Compiled kernels: their cache, what the compiler is told, and what is done without some names.

The cache is fresh after every edit, and never a reason to fail.
"""

import ctypes
import gc
import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numba
import numpy as np
import pytest
from numba.core import caching, event, options

import skvmf

pytestmark = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled or kept")

PACKAGE = Path(skvmf.__file__).parent
KERNEL = """
from ._jit import assume_no_overlap, inlined, kernel, prefetch, row_kernel, sum_kernel

FACTOR = 2.0


@kernel
def _factor():
    return FACTOR


@kernel
def scaled(x):
    return _factor() * x


@sum_kernel
def more(x):
    return _factor() + x


@inlined
def _add(row, out):
    for j in range(row.shape[0]):
        out[j] += row[j]


@row_kernel
def add_rows(X, out):
    assume_no_overlap()
    for n in range(X.shape[0]):
        prefetch(X, min(n + 1, X.shape[0] - 1))
        _add(X[n], out)


@row_kernel
def add_rows_that_may_overlap(X, out):
    for n in range(X.shape[0]):
        _add(X[n], out)
"""
CALL = "from small.kernels import scaled; print(scaled(5.0), sum(scaled.stats.cache_hits.values()))"
FULL_DISK = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))  # an index fits, code does not
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a package of two kernels and the real decorators, and its own cache."""
    package = tmp_path / "small"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "kernels.py").write_text(KERNEL, encoding="utf-8")
    for name in ("_jit.py", "_undocumented.py"):
        shutil.copy(PACKAGE / "_kernels" / name, package)
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    yield tmp_path
    forget()


def forget():
    """Forget the modules of the folder, as another process would."""
    for name in [name for name in sys.modules if name.split(".")[0] == "small"]:
        del sys.modules[name]
    importlib.invalidate_caches()


def fresh():
    """Import the kernel as if for the first time."""
    forget()
    return importlib.import_module("small.kernels").scaled


def call():
    """Return the kernel's answer to 5 in what is like a new process, and whether code was kept."""
    scaled = fresh()
    return scaled(5.0), sum(scaled.stats.cache_hits.values())


def edit(path, old, new):
    source = path.read_text(encoding="utf-8")
    assert source.count(old) == 1
    path.write_text(source.replace(old, new), encoding="utf-8")


def run(folder, code, before=None, **environment):
    """Run code in another process, with the folder's packages and cache."""
    paths = {"PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": str(folder / "cache")}
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=folder,
        env=os.environ | paths | environment,
        preexec_fn=before,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def files(folder, pattern):
    result = sorted((folder / "cache").rglob(pattern))
    assert result
    return result


def test_code_is_kept_until_its_file_is_edited(folder):
    assert [call(), call()] == [(10, 0), (10, 1)]
    edit(folder / "small" / "kernels.py", "FACTOR = 2.0", "FACTOR = 30.0")
    assert [call(), call()] == [(150, 0), (150, 1)]


DAMAGES = {
    "half": lambda kept: kept[: len(kept) // 2],
    "empty": lambda kept: b"",
    "zeros": lambda kept: b"\0" * len(kept),
    "text": lambda kept: b"no pickle at all",
    "none": lambda kept: b"\x80\x04N.",  # a pickle, but of None
    "foreign": lambda kept: b"cno_such_module\nname\n.",
}


@pytest.mark.parametrize("pattern", ["*.nbi", "*.nbc"])
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damaged_files_are_replaced(folder, pattern, damage):
    call()
    for path in files(folder, pattern):
        path.write_bytes(damage(path.read_bytes()))
    assert [call(), call()] == [(10, 0), (10, 1)]


@pytest.mark.slow
def test_an_index_written_to_a_full_disk_names_no_older_code(folder):
    pytest.importorskip("resource")
    call()
    edit(folder / "small" / "kernels.py", "FACTOR = 2.0", "FACTOR = 30.0")
    assert run(folder, FULL_DISK + CALL) == "150.0 0"
    assert [call(), call()] == [(150, 0), (150, 1)]


def test_nowhere_to_write(folder, monkeypatch):
    """Neither the folder that was asked for, nor the package's own, nor the user's."""
    for file in (folder / "cache", folder / "small" / "__pycache__", folder / "home"):
        file.touch()
    for name in ("HOME", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(folder / "home"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert call() == (10, 0)
    assert call() == (10, 0)


def without_override():
    """Take from root what lets it write where rights do not (CAP_DAC_OVERRIDE of Linux)."""
    if os.geteuid() == 0:
        ctypes.CDLL(None).prctl(24, 1, 0, 0, 0)


@pytest.mark.skipif(sys.platform != "linux", reason="rights are others there")
def test_code_that_can_only_be_read_is_read_and_new_code_is_kept_at_home(folder):
    """As in a container: the folder is filled when the image is built, and somebody else runs."""
    call()
    home = folder / "home"
    home.mkdir()
    package = folder / "small", folder / "cache"
    for path in [*package, *(path for each in package for path in each.rglob("*"))]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    options = {"HOME": str(home), "XDG_CACHE_HOME": str(home), "before": without_override}
    both = CALL + "; print(scaled(5), sum(scaled.stats.cache_hits.values()))"
    assert [run(folder, both, **options) for _ in range(2)] == ["10.0 1\n10.0 1", "10.0 1\n10.0 2"]
    home.chmod(0o555)  # nothing can be written
    code = CALL + "; print(scaled.stats.cache_path)"
    options |= {"HOME": str(folder / "cache"), "XDG_CACHE_HOME": str(folder / "cache")}
    assert run(folder, code, **options) == "10.0 1\nNone"
    for path in folder.rglob("*"):
        path.chmod(0o755)


def test_python_looks_for_no_garbage_while_a_kernel_is_compiled(folder):
    seen = []

    class Listener(event.Listener):
        def on_start(self, _):
            seen.append(gc.isenabled())

        def on_end(self, _):
            seen.append(gc.isenabled())

    kernels = importlib.import_module("small.kernels")
    with event.install_listener("numba:compile", Listener()):
        kernels.scaled(5.0)
        assert gc.isenabled()
        gc.disable()
        try:
            kernels.scaled(5)
            assert not gc.isenabled()
        finally:
            gc.enable()
    assert len(seen) >= 4
    assert not any(seen)
    with pytest.raises(numba.TypingError):
        kernels.scaled("text")
    assert gc.isenabled()


def test_parts_run_as_python_from_python(folder):
    kernels = importlib.import_module("small.kernels")
    assert kernels._factor() == 2.0
    out = np.ones(3)
    kernels._add(np.arange(3.0), out)
    assert out.tolist() == [1, 2, 3]


def compilations(kernels):
    """Return the names of what is compiled when two kernels are called that share a part."""
    names = []

    class Listener(event.Listener):
        def on_start(self, start):
            names.append(start.data["dispatcher"].__name__)

        def on_end(self, _):
            pass

    with event.install_listener("numba:compile", Listener()):
        assert kernels.scaled(5.0) == 10
        assert kernels.more(5.0) == 7
    return names


def test_a_part_is_compiled_once_for_kernels_with_other_options(folder):
    kernels = importlib.import_module("small.kernels")
    assert compilations(kernels) == ["scaled", "_factor", "more"]


def sums_of(add):
    """Return what a kernel adds up, and its code as LLVM has optimized it."""
    X, out = np.arange(60.0).reshape(3, 20), np.ones(20)
    add(X, out)
    np.testing.assert_array_equal(out, 1 + X.sum(axis=0))
    (code,) = add.inspect_llvm().values()
    return code


CHECKED = "!alias.scope"  # of a loop that LLVM enters if addresses tell that no arrays overlap


def test_addresses_are_compared_unless_no_overlap_is_assumed(folder):
    kernels = importlib.import_module("small.kernels")
    code = sums_of(kernels.add_rows)
    assert CHECKED not in code
    assert "call void @llvm.prefetch" in code
    assert CHECKED in sums_of(kernels.add_rows_that_may_overlap)


# Names that are not documented may be gone in the next release of Numba. What they buy is then
# gone too, and nothing else.


def test_without_names_of_instructions(folder, monkeypatch):
    kernels = importlib.import_module("small.kernels")
    monkeypatch.setattr(sys.modules["small._jit"], "ir", SimpleNamespace())
    code = sums_of(kernels.add_rows)
    assert CHECKED in code
    assert "llvm.prefetch" not in code


@pytest.mark.parametrize("name", ["no_cpython_wrapper", "no_cfunc_wrapper"])
def test_without_names_of_entries(folder, monkeypatch, name):
    monkeypatch.delattr(options.DefaultOptions, name)
    undocumented = importlib.import_module("small._undocumented")
    (other,) = {"no_cpython_wrapper", "no_cfunc_wrapper"} - {name}
    assert undocumented.without_entries("cpython", "cfunc") == {other: True}
    assert [call(), call()] == [(10, 0), (10, 1)]


@pytest.mark.parametrize("module", [SimpleNamespace(), None], ids=["name", "file"])
def test_without_a_list_of_options(folder, monkeypatch, module):
    monkeypatch.setitem(sys.modules, "numba.core.options", module)
    assert importlib.import_module("small._undocumented").without_entries("cfunc") == {}
    assert [call(), call()] == [(10, 0), (10, 1)]


def test_without_types_of_python_functions(folder, monkeypatch):
    def typeof(_):
        raise ValueError

    monkeypatch.setattr(numba, "typeof", typeof)
    kernels = importlib.import_module("small.kernels")
    del kernels._factor._numba_type_
    assert compilations(kernels) == ["scaled", "_factor", "more", "_factor"]


@pytest.mark.parametrize("name", ["CompileResultCacheImpl", "FunctionCache"])
def test_without_names_of_caches(folder, monkeypatch, name):
    monkeypatch.delattr(caching, name)
    assert [call(), call()] == [(10, 0), (10, 1)]


def test_without_a_list_of_folders(folder, monkeypatch):
    monkeypatch.setattr(caching, "CompileResultCacheImpl", SimpleNamespace())
    assert [call(), call()] == [(10, 0), (10, 1)]


def test_without_the_attributes_of_compiled_functions(folder):
    undocumented = importlib.import_module("small._undocumented")
    undocumented.compile_uncollected(another := SimpleNamespace())
    undocumented.forgive(another)
    assert vars(another) == {}


class AnotherCache:
    """A cache of which only two methods are known, and which fails."""

    def load_overload(self, *_):
        raise ValueError

    def save_overload(self, *_):
        raise OSError


def test_without_the_attributes_of_caches(folder):
    cache = importlib.import_module("small._undocumented").ForgivingCache(AnotherCache(), sums_of)
    assert cache.load_overload("key") is None
    cache.save_overload("key", "code")
