"""Package ``pymongo.synchronous``, whose modules libraries import for annotations."""

from __future__ import annotations
