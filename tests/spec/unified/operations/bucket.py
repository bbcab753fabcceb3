"""Operations of GridFS buckets."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

from tests.spec.unified.matching import hex_bytes
from tests.spec.unified.operations.method import Method, read_documents
from tests.spec.unified.schema import FormatError

_UPLOAD_OPTIONS = "session chunkSizeBytes metadata"


def _source_stream(spec: Mapping[str, Any]) -> io.BytesIO:
    if set(spec) != {"$$hexBytes"}:
        raise FormatError(f"source must be hexadecimal bytes, was {spec!r}")
    return io.BytesIO(hex_bytes(spec["$$hexBytes"]))


def _upload(bucket: Any, filename: str, source: Mapping[str, Any], **options: Any) -> Any:
    return bucket.upload_from_stream(filename, _source_stream(source), **options)


def _upload_with_id(bucket: Any, file_id: Any, filename: str, source: Mapping[str, Any], **options: Any) -> None:
    bucket.upload_from_stream_with_id(file_id, filename, _source_stream(source), **options)


def _find(bucket: Any, filter: Mapping[str, Any], **options: Any) -> Any:
    return bucket.find(filter, **options)


def _read(stream: Any) -> bytes:
    with stream:
        content = stream.read()
        assert isinstance(content, bytes)
        return content


def _drop(bucket: Any) -> None:
    storage = bucket._storage
    # Drop both collections of the bucket. GridFSBucket has no method `drop`.
    with storage.time_limit():
        storage.files.drop()
        storage.chunks.drop()


_FILE_ID_NAMES = {"id": "file_id"}

OPERATIONS: dict[str, Method] = {
    "delete": Method("delete", "id", "session", names=_FILE_ID_NAMES),
    "deleteByName": Method("delete_by_name", "filename", "session"),
    "download": Method("open_download_stream", "id", "session", names=_FILE_ID_NAMES, convert_result=_read),
    "downloadByName": Method("open_download_stream_by_name", "filename", "revision session", convert_result=_read),
    "drop": Method(_drop),
    "find": Method(_find, "filter", "session skip limit sort batchSize noCursorTimeout", convert_result=read_documents),
    "rename": Method("rename", "id newFilename", "session", names=_FILE_ID_NAMES),
    "renameByName": Method("rename_by_name", "filename newFilename", "session"),
    "upload": Method(_upload, "filename source", _UPLOAD_OPTIONS),
    "uploadWithId": Method(_upload_with_id, "id filename source", _UPLOAD_OPTIONS, names=_FILE_ID_NAMES),
}
