"""What there is to try on a deployment that a connection string names, and a report of it: ``python -m tests.live``."""
