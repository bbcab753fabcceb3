"""GridFS: files of any size. The database stores a file in chunks, by default of 255 KiB."""

from gmongo.gridfs.bucket import GridFSBucket
from gmongo.gridfs.errors import NoFile
from gmongo.gridfs.grid_fs import GridFS
from gmongo.gridfs.grid_in import GridIn
from gmongo.gridfs.grid_out import GridOut
from gmongo.gridfs.grid_out_cursor import GridOutCursor
from gmongo.gridfs.storage import DEFAULT_CHUNK_SIZE

__all__ = ["DEFAULT_CHUNK_SIZE", "GridFS", "GridFSBucket", "GridIn", "GridOut", "GridOutCursor", "NoFile"]
