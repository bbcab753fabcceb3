"""Errors of GridFS."""

from gmongo.errors import PyMongoError

__all__ = ["CorruptGridFile", "FileExists", "GridFSError", "NoFile", "PyMongoError"]


class GridFSError(PyMongoError):
    """Base class of the errors of GridFS."""


class CorruptGridFile(GridFSError):
    """The chunks of a file do not agree with the description of the file."""


class NoFile(GridFSError):
    """The file does not exist."""


class FileExists(GridFSError):
    """A file with the same ``_id`` already exists."""
