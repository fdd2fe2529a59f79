"""Public docstrings pass numpydoc's validation: ``python -m tests.docstrings`` prints what fails.

The lint extra is enough for it. Without torch, docstrings of skvmf.neural are left to CI.
"""

import configparser
import importlib
import re
import sys
from pathlib import Path
from types import FunctionType

ROOT = Path(__file__).resolve().parents[1]
OPTIONAL = {"dask", "matplotlib", "torch"}
PUBLIC = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted((ROOT / "skvmf").rglob("*.py"))
    if not any(re.match("_(?!_init__)", part) for part in path.relative_to(ROOT).parts)
]


def main():
    """Print all mistakes, and return whether there are any."""
    found = []
    for name in PUBLIC:
        try:
            found += mistakes(name)
        except ImportError as error:
            if error.name not in OPTIONAL:
                raise
            print(f"{name} is not checked: it needs {error.name}")
    print("\n".join(found) or "no mistakes")
    return bool(found)


def mistakes(name):
    """Return what numpydoc says against the docstrings of a public module's objects."""
    from numpydoc import validate

    settings = configparser.ConfigParser()
    settings.read(ROOT / "setup.cfg")
    chosen = settings["tool:numpydoc_validation"]["checks"].split(",")
    checks = validate.get_validation_checks(set(chosen))
    module, found = importlib.import_module(name), []
    for item in public_names(module):
        for path in [f"{name}.{item}", *methods(f"{name}.{item}", getattr(module, item))]:
            errors = validate.validate(path)["errors"]
            # Methods of a contract name shapes in their sentences: who writes one reads them all.
            left_out = {"PR01", "RT01"} if name == "skvmf.families" and path.count(".") > 2 else ()
            found += [
                f"{path}: {code} {text}"
                for code, text in errors
                if code in checks and code not in left_out
            ]
    return found


def public_names(module):
    """Return the names of what the module promises: documented functions and classes."""
    names = [name for name in getattr(module, "__all__", []) if not name.startswith("_")]
    return [name for name in names if callable(getattr(module, name))]


def methods(path, item):
    """Yield the dotted names of a class's public methods that are skvmf's own."""
    for base in item.__mro__ if isinstance(item, type) else []:
        if base.__module__.startswith("skvmf."):
            yield from (
                f"{path}.{name}"
                for name, value in vars(base).items()
                if not name.startswith("_") and isinstance(value, FunctionType | classmethod)
            )


if __name__ == "__main__":
    sys.exit(main())
