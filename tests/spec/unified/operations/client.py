"""Operations of clients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gmongo import MongoClient
from gmongo.driver_info import DriverInfo
from tests.spec.unified.operations.method import Method, read_documents
from tests.spec.unified.operations.models import write_models
from tests.spec.unified.operations.watching import WATCH
from tests.spec.unified.values import check_known


def _bulk_write(client: MongoClient[Any], models: list[Any], **arguments: Any) -> Any:
    return client.bulk_write(write_models(models, with_namespaces=True), **arguments)


def _list_database_objects(client: MongoClient[Any], **arguments: Any) -> list[str]:
    return [client[name].name for name in client.list_database_names(**arguments)]


def _append_metadata(client: MongoClient[Any], driver_info_options: Mapping[str, str]) -> None:
    check_known(driver_info_options, {"name", "version", "platform"}, "appendMetadata")
    client.append_metadata(DriverInfo(**driver_info_options))


OPERATIONS: dict[str, Method] = {
    "appendMetadata": Method(_append_metadata, "driverInfoOptions"),
    "clientBulkWrite": Method(
        _bulk_write,
        "models",
        "session ordered verboseResults bypassDocumentValidation comment let writeConcern",
    ),
    "close": Method("close"),
    "createChangeStream": WATCH,
    "dropDatabase": Method("drop_database", "database", "session comment", names={"database": "name_or_database"}),
    "listDatabaseNames": Method("list_database_names", "", "session comment"),
    "listDatabaseObjects": Method(_list_database_objects, "", "session comment"),
    "listDatabases": Method("list_databases", "", "session comment", "filter nameOnly", convert_result=read_documents),
}
