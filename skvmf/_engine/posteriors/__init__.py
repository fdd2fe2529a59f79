"""Responsibilities of components for rows: the E-step.

Softmax, alpha-entmax and hard assignments are one class.
"""
