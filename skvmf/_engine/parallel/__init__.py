"""Sums over blocks of rows on several threads.

They are bit-identical for any number of threads, because blocks are always added along the same
binary tree.
"""
