"""Compression with zstandard."""

from __future__ import annotations

from tests.extras._compression import talk


def main() -> None:
    talk("zstd", 3)
