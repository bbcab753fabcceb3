"""Answers of MongoDB servers to commands, in data files.

A program records and checks the answers, and tests use them.
"""
