"""How statistics become new components: the M-step.

Estimates whose means or scales keep an order; without one the update is the family's maximum.
"""
