"""Runner of official tests in the unified test format."""
