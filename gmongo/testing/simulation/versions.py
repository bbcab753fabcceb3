"""The server versions that the simulation supports, and their wire versions."""

from __future__ import annotations

# Pairs of a release and the maxWireVersion of the release, in ascending order. A server version has
# the maxWireVersion of the last release that is not newer than the server version.
_WIRE_VERSIONS = (
    ((4, 2), 8), ((4, 4), 9), ((5, 0), 13), ((5, 1), 14), ((5, 2), 15), ((5, 3), 16), ((6, 0), 17), ((6, 1), 18),
    ((6, 2), 19), ((6, 3), 20), ((7, 0), 21), ((7, 1), 22), ((7, 2), 23), ((7, 3), 24), ((8, 0), 25), ((8, 1), 26),
    ((8, 2), 27)
)  # fmt: skip
# The first version with the command `hello`, streams of hello replies, and the error labels
# RetryableWriteError and ResumableChangeStreamError.
STREAMS_AND_LABELS_VERSION = (4, 4)
OLDEST_VERSION, NEWEST_VERSION = _WIRE_VERSIONS[0][0], _WIRE_VERSIONS[-1][0]


def parse_version(version: str) -> tuple[int, int, int]:
    """Convert a version text such as ``'8.0'`` or ``'8.0.4'`` to three numbers."""
    try:
        numbers = tuple(int(part) for part in version.split("."))
    except ValueError:
        numbers = ()
    if len(numbers) not in (2, 3) or not OLDEST_VERSION <= numbers[:2] <= NEWEST_VERSION:
        raise ValueError(f"version {version!r} is not between '4.2' and '8.2'")
    return numbers[0], numbers[1], numbers[2] if len(numbers) == 3 else 0


def find_wire_version(version: tuple[int, ...]) -> int:
    """Return the maxWireVersion of a server version."""
    return max(number for release, number in _WIRE_VERSIONS if release <= version[:2])
