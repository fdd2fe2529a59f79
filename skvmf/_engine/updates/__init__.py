"""How statistics become new components: the M-step.

Either each family's closed form, or estimates whose means or scales keep an order.
"""
