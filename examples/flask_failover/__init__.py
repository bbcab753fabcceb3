"""A Flask application, and tests that let its replica set fail."""
