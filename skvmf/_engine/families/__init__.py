"""What a component is: densities, sufficient statistics, and their maximum."""
