"""Whole histories of failures, each made from a seed: a workload, what goes wrong meanwhile, and a check of the end."""
