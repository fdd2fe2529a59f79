"""Floor 0: jitted arithmetic on arrays and scalars; validates nothing."""
