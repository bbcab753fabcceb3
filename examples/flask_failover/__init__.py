"""A Flask application, and tests in which the replica set of the application fails."""
