"""Tests of libraries that import ``pymongo``.

``test_suites.py`` runs these tests once with PyMongo, and once with gmongo as ``pymongo``.
"""
