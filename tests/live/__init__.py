"""Check gmongo on the deployment that a URI selects, and write a report (``python -m tests.live``)."""
