"""Names of the private module ``pymongo.database_shared`` that libraries import."""

from __future__ import annotations

from gmongo.database import _check_name

__all__ = ["_check_name"]
