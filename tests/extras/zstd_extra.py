"""Exchange messages that are compressed with zstandard."""

from __future__ import annotations

from tests.extras._compression import exchange_compressed_messages


def main() -> None:
    exchange_compressed_messages("zstd", 3)
