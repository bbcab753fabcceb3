"""Mutation tests (``python -m tests.mutations``).

A mutation is a small change of gmongo that a test must detect.
"""
