"""What only the papers' figures need: no part of the package."""
