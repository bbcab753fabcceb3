"""PyMongo's own tests, run through ``gmongo.as_pymongo`` with PyMongo itself beside it."""
