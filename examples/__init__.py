"""Example programs for gmongo."""
