"""What may go wrong with files."""

from __future__ import annotations

from gmongo.errors import PyMongoError

__all__ = ["CorruptGridFile", "FileExists", "GridFSError", "NoFile", "PyMongoError"]


class GridFSError(PyMongoError):
    """Base class of the errors of files."""


class CorruptGridFile(GridFSError):
    """The chunks of a file are not what its description says."""


class NoFile(GridFSError):
    """There is no such file."""


class FileExists(GridFSError):
    """There is a file with that ``_id`` already."""
