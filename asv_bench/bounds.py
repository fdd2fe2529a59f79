"""Count what exact bounds would save hard EM on the sphere: ``python asv_bench/bounds.py``.

After a step the cosine of a row with a mean direction lies within bounds by the triangle
inequality (Schubert, Lang and Feher, "Accelerating spherical k-means", SISAP 2021). Kept for each
row and component (Elkan) they spare single products, kept once a row (Hamerly) whole rows. What
counts is how many, not how fast.
"""

import numpy as np

N_ROWS, N_FEATURES, N_COMPONENTS, N_STEPS = 20_000, 384, 500, 12


def rows(length, rng):
    """Return rows around random directions, of a mean resultant length."""
    centres = unit(rng.normal(size=(N_COMPONENTS, N_FEATURES)))
    noise = rng.normal(size=(N_ROWS, N_FEATURES)) * np.sqrt((1 - length**2) / N_FEATURES)
    return unit(length * centres[rng.integers(N_COMPONENTS, size=N_ROWS)] + noise)


def unit(X):
    """Return rows of unit length; zero rows stay."""
    norms = np.linalg.norm(X, axis=1, keepdims=True)
    return X / np.where(norms > 0, norms, 1)


def highest(cosines, turns):
    """Return how near a row can come to a direction that has turned by angles of a cosine."""
    sines = np.sqrt(np.clip(1 - cosines**2, 0, 1) * np.clip(1 - turns**2, 0, 1))
    return np.where(cosines <= turns, cosines * turns + sines, 1.0)


def moved(centres, labels, X):
    """Return the mean directions of the rows of each label; those without rows stay."""
    sums = np.zeros_like(centres)
    np.add.at(sums, labels, X)
    return np.where(sums.any(axis=1, keepdims=True), unit(sums), centres)


def spared(cosines, labels, turns):
    """Return which rows, and which products, need not be looked at after directions turned."""
    every = np.arange(N_ROWS)
    own = -highest(-cosines[every, labels], turns[labels])
    others = cosines.copy()
    others[every, labels] = -1
    return own >= highest(others.max(axis=1), turns.min()), own[:, None] >= highest(others, turns)


def main():
    """Print the shares of rows and of products that bounds spare, step by step."""
    for length in (0.35, 0.6):
        print(
            f"Mean resultant length {length}\nstep  rows spared  products spared  directions still"
        )
        rng = np.random.default_rng(0)
        X = rows(length, rng)
        centres = X[rng.choice(N_ROWS, N_COMPONENTS, replace=False)]
        for step in range(1, N_STEPS):
            cosines = X @ centres.T
            labels = cosines.argmax(axis=1)
            before, centres = centres, moved(centres, labels, X)
            turns = np.clip(np.sum(centres * before, axis=1), -1, 1)
            parts = (*spared(cosines, labels, turns), (centres == before).all(axis=1))
            print(f"{step:4d}", *(f"{part.mean():12.3f}" for part in parts))


if __name__ == "__main__":
    main()
