"""What the client knows of one server."""

from __future__ import annotations

from gmongo.sdam.server_description import ServerDescription

__all__ = ["ServerDescription"]
