"""Applications of libraries, as tests that say ``pymongo``. ``test_suites.py`` runs them with both drivers."""
