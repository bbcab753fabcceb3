"""A Flask-PyMongo application without gmongo code, and the one line with which the application uses gmongo."""
