"""Compression with snappy."""

from __future__ import annotations

from tests.extras._compression import talk


def main() -> None:
    talk("snappy", 1)
