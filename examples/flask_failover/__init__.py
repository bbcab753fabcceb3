"""A Flask application, and tests in which its replica set fails."""
