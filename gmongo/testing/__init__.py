"""Databases for tests, examples and first steps, without a MongoDB installation.

:class:`EmbeddedDatabase` runs a small, real database server over a SQLite file; :func:`database_uri` uses it
where ``MONGODB_URI`` names no other. Both need ``pip install 'gmongo[testing]'``.
"""

from __future__ import annotations

from gmongo.testing.embedded import (
    URI_VARIABLE,
    EmbeddedDatabase,
    EmbeddedDatabaseError,
    database_uri,
)

__all__ = ["URI_VARIABLE", "EmbeddedDatabase", "EmbeddedDatabaseError", "database_uri"]
