"""What each part of a mixture must provide: abstract classes for whoever writes another.

Parts exchange the values defined here: scores, responsibilities, statistics and parameters.
"""
