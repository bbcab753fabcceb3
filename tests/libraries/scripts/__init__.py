"""Tests that use libraries with ``pymongo``. ``test_suites.py`` runs these tests with PyMongo and with gmongo."""
