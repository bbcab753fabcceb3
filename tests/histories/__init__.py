"""Random histories.

A history runs operations while a deployment has random faults, and checks the results. Its seed
determines all random choices.
"""
