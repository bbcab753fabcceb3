"""Descriptions of servers, as the client sees them."""

from __future__ import annotations

from gmongo.sdam.server_description import ServerDescription

__all__ = ["ServerDescription"]
