"""The runner of tests in the unified test format, and what it needs of a deployment."""
