"""The layout of a map: overlapping components near each other, and no overlapping discs."""

import numpy as np

from .._typing import Array

_ROUNDS = 500  # of pushing discs apart, at most


def map_positions(log_affinities: Array, radii: Array) -> Array:
    """Return positions (K, 2) for discs of given radii (K,).

    Classical scaling of Bhattacharyya distances (minus the log-overlaps, (K, K)), scaled to the
    area of the discs, which are then pushed apart until none overlap.
    """
    K = len(radii)
    if K < 2:
        return np.zeros((K, 2))
    squares = -np.maximum(log_affinities, -1e6)
    squares = 0.5 * (squares + squares.T)
    np.fill_diagonal(squares, 0)
    centred = squares - squares.mean(axis=0)
    centred -= centred.mean(axis=1, keepdims=True)
    values, vectors = np.linalg.eigh(-0.5 * centred)
    places = vectors[:, ::-1][:, :2] * np.sqrt(np.maximum(values[::-1][:2], 0))
    places *= np.where(places[np.abs(places).argmax(axis=0), np.arange(places.shape[1])] < 0, -1, 1)
    if places.shape[1] < 2:
        places = np.hstack([places, np.zeros((K, 1))])
    return _apart(_gathered(places) * 1.2 * np.sqrt((radii**2).sum()), radii)


def _gathered(places: Array) -> Array:
    """Return places with a mean squared distance of one, with those far out moved in."""
    distances = np.sqrt((places**2).sum(axis=1, keepdims=True))
    width = np.sqrt((distances**2).mean())
    if width <= 1e-6:  # all are alike
        return _sunflower(len(places))
    near = places / (distances + width)
    return near / np.sqrt((near**2).sum(axis=1).mean())


def _apart(places: Array, radii: Array) -> Array:
    """Return nearby places at which discs do not overlap."""
    places = places + 1e-3 * radii.mean() * _sunflower(len(radii))
    wanted = 1.08 * (radii[:, np.newaxis] + radii)
    np.fill_diagonal(wanted, 0)
    for _ in range(_ROUNDS):
        gaps = places[:, np.newaxis] - places
        distances = np.sqrt((gaps**2).sum(axis=-1))
        short = np.maximum(wanted - distances, 0)
        if short.max() <= 1e-3 * radii.min():
            break
        unit = gaps / np.maximum(distances, 1e-12)[:, :, np.newaxis]
        moves = 0.3 * (short[:, :, np.newaxis] * unit).sum(axis=1)
        lengths = np.sqrt((moves**2).sum(axis=1))
        places = places + moves * np.minimum(1, radii / np.maximum(lengths, 1e-12))[:, np.newaxis]
    return places


def _sunflower(n: int) -> Array:
    """Return points (n, 2) that fill a disc evenly, with a mean squared distance of one."""
    angles = np.arange(n) * np.pi * (3 - np.sqrt(5))
    distances = np.sqrt(2 * (np.arange(n) + 0.5) / n)
    return distances[:, np.newaxis] * np.column_stack([np.cos(angles), np.sin(angles)])


def disc_offsets(n: int, rng: np.random.Generator) -> Array:
    """Return random points (n, 2) of the unit disc."""
    angles, radii = 2 * np.pi * rng.random(n), np.sqrt(rng.random(n))
    return np.column_stack([radii * np.cos(angles), radii * np.sin(angles)])
