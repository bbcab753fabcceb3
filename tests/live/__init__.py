"""Checks of gmongo on the deployment of a URI, and a report of the checks: ``python -m tests.live``."""
