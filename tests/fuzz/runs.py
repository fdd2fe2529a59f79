"""How a promise is kept or broken: strict about warnings, errors and time."""

import os
import re
import sys
import threading
import traceback
import warnings
from contextlib import contextmanager
from dataclasses import dataclass

DOCUMENTED_WARNINGS = [
    "Component .* is by far the broadest",
    "temperature=.* is far too large",
    ".*did not reach tol",
    "The sample weights sum to",
    "weight_concentration_prior=.* outweighs the data",
    "There are fewer distinct rows",
    r"The fit ended with \d+ of \d+ components",
    "criterion='slope' could not estimate a slope",
    r"n_init=\d+ has no effect with means_init or a given partition",
]
SECONDS = 1200  # for a case that takes milliseconds: only what never ends takes so long


@dataclass(frozen=True)
class Failure:
    """A broken promise, and the way in which it was broken."""

    promise: str
    kind: str  # the error, without its numbers
    message: str

    @property
    def key(self):
        return self.promise, self.kind


class Refused(Exception):
    """The estimator says what is wrong with the data or the parameters: no promise is broken."""


@contextmanager
def strict():
    """Make errors of all warnings that are not documented."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for message in DOCUMENTED_WARNINGS:
            warnings.filterwarnings("ignore", message=message)
        yield


@contextmanager
def ending(case):
    """End the process with the case's code if it runs on and on, as compiled code may."""

    def give_up():
        print(f"\nThis never ends:\n\n{case.code()}", file=sys.stderr, flush=True)
        os._exit(3)

    timer = threading.Timer(SECONDS, give_up)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def failures(case, refusals=None, promises=None):
    """Return the promises that a case breaks; none where it is refused, which is counted.

    All of them are tried, or the `promises` given.
    """
    with ending(case), strict():
        try:
            subject = case.subject()
        except Refused as refusal:
            if refusals is not None:
                refusals[_without_numbers(str(refusal))] += 1
            return []
        except Exception as error:
            return [_failure("fits", error)]
        found = []
        for promise in case.promises if promises is None else promises:
            try:
                promise(subject)
            except Refused:
                continue
            except Exception as error:
                found.append(_failure(promise.__name__, error))
        return found


def refusing(call, *args, **kwargs):
    """Call, and take a ValueError that skvmf or scikit-learn's validation raises for a refusal."""
    try:
        return call(*args, **kwargs)
    except ValueError as error:
        *_, last = traceback.extract_tb(error.__traceback__)
        told = "skvmf" in last.filename or "sklearn" in last.filename
        if told and last.line.startswith("raise"):  # else NumPy's own error
            raise Refused(str(error)) from error
        raise


def _failure(promise, error):
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "/fuzz/" not in f.filename]
    where = f" in {os.path.basename(frames[-1].filename)}:{frames[-1].name}" if frames else ""
    message = f"{type(error).__name__}: {error}".strip()
    return Failure(promise, _without_numbers(message) + where, message)


def _without_numbers(message):
    first = message.splitlines()[0]
    return re.sub(r"-?\d[\d.e+-]*|\bnan\b|\binf\b", "#", first)[:120]


def check(case):
    """Raise an AssertionError for the first promise that a case breaks."""
    if found := failures(case):
        raise AssertionError(f"{found[0].promise}: {found[0].message}\n\n{case.code()}")
