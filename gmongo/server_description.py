"""Server descriptions, which contain what the client knows about each server."""

from __future__ import annotations

from gmongo.sdam.server_description import ServerDescription

__all__ = ["ServerDescription"]
