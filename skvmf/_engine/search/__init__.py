"""Where a fit begins: one class a way, and the algorithms that they call."""
