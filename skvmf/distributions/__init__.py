"""Floor 1: densities, entropies and samplers: public, validated, stateless."""
