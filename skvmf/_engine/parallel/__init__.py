"""Sums over blocks of rows on several threads. They have the same bits for any number of threads,

because blocks are always added along the same binary tree.
"""
