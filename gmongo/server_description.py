"""Server descriptions: the state of each server that the client knows."""

from __future__ import annotations

from gmongo.sdam.server_description import ServerDescription

__all__ = ["ServerDescription"]
