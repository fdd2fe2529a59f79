"""Compiled arithmetic on arrays and scalars, without validation."""
