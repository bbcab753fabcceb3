"""Recorded answers of MongoDB servers to commands.

A program writes the answers to data files. Tests compare the answers of the simulation with these files.
"""
