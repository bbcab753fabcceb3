"""Histories: each history runs a workload with random faults, and checks the results. A seed determines a history."""
