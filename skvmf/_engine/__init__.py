"""Expectation maximization and its parts, on arrays and without scikit-learn."""
