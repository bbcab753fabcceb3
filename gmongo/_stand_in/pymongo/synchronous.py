"""Package of PyMongo's synchronous modules, which libraries import for annotations."""

from __future__ import annotations
