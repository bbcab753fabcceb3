"""Checks of a deployment with a given connection string, and a report: ``python -m tests.live``."""
