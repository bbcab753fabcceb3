"""A Flask-PyMongo application. Only ``gunicorn.conf.py`` imports gmongo."""
