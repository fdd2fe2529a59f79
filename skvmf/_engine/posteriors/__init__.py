"""How a row is shared among components: the E-step.

Softmax, alpha-entmax and hard assignments are one class.
"""
