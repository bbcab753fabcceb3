"""Run PyMongo's own tests with gmongo (``gmongo.as_pymongo``) and, for comparison, with PyMongo."""
