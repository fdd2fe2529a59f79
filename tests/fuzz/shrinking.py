"""Smaller cases that break the same promise in the same way."""

from dataclasses import MISSING, fields, is_dataclass, replace

from .runs import failures

LEAST = {"n": 1, "d": 2, "n_tags": 1, "longest": 1}


def smallest(case, failure, n_steps):
    """Make a case smaller as long as it fails in the same way; return it and its failure."""
    improved = True
    while improved and n_steps > 0:
        improved = False
        for smaller in simpler(case):
            n_steps -= 1
            same = [found for found in failures(smaller) if found.key == failure.key]
            if same:
                case, failure, improved = smaller, same[0], True
                break
            if n_steps <= 0:
                break
    return case, failure


def simpler(thing):
    """Yield a dataclass with one field simpler: its default, something less, a key left out."""
    for spec in fields(thing):
        value, default = getattr(thing, spec.name), spec.default
        if isinstance(value, int):
            least = LEAST.get(spec.name, 0)
            options = sorted({least, value // 2, value - 1} & set(range(least, value)))
        elif isinstance(value, dict):
            options = list(_simpler_dict(value))
        elif isinstance(value, tuple) and value and is_dataclass(value[0]):
            options = list(_simpler_tuple(value))
        else:
            options = [] if default is MISSING or value == default else [default]
            options += list(simpler(value)) if is_dataclass(value) else []
        for option in options:
            yield replace(thing, **{spec.name: option})


def _simpler_tuple(parts):
    for i, part in enumerate(parts):
        if len(parts) > 1:
            yield parts[:i] + parts[i + 1 :]
        for option in simpler(part):
            yield (*parts[:i], option, *parts[i + 1 :])


def _simpler_dict(params):
    for name, value in params.items():
        yield {key: kept for key, kept in params.items() if key != name}
        if is_dataclass(value):
            for option in simpler(value):
                yield params | {name: option}
        if name == "n_components" and value > 1:
            yield params | {name: value - 1}
