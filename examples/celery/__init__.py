"""Celery with MongoDB as its broker and for its results, on gmongo."""
