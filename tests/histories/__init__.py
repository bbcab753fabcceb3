"""Histories of failures: each seed determines a workload, its faults, and the checks of the result."""
