"""A MongoEngine application. Only ``gunicorn.conf.py`` imports gmongo."""
