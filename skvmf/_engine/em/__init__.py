"""What a fit repeats: the E-step, the M-step, the loop, and what is read off a fitted mixture."""
