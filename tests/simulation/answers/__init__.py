"""Recorded answers of MongoDB servers to commands.

Tests compare the recorded answers with the answers of the simulation.
"""
