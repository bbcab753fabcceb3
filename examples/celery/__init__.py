"""Celery with MongoDB as broker and result backend, on gmongo."""
