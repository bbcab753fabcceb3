"""Runner of tests in the unified test format."""
