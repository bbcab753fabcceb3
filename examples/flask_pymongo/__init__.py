"""A Flask-PyMongo application that knows nothing of gmongo, and the one line that lets it run on it."""
