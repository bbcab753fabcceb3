"""Applications of libraries as tests with ``pymongo``. ``test_suites.py`` runs them with both drivers."""
