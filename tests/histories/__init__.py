"""Random histories.

A history runs operations while a deployment has random faults, and checks the results. The seed of
a history determines all random choices.
"""
