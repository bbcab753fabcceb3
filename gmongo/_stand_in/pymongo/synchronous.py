"""PyMongo keeps its synchronous modules here; libraries import them for annotations."""

from __future__ import annotations
