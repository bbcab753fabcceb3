"""Mutations are small changes of the code that a test must detect (``python -m tests.mutations``)."""
