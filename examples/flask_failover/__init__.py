"""A Flask application, and tests with failures of its replica set."""
