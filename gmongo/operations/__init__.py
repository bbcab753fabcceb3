"""Write models of ``bulk_write``, and index models of ``create_indexes``."""

from gmongo.operations.models import (
    DeleteMany,
    DeleteOne,
    IndexModel,
    InsertOne,
    ReplaceOne,
    SearchIndexModel,
    UpdateMany,
    UpdateOne,
)

__all__ = [
    "DeleteMany",
    "DeleteOne",
    "IndexModel",
    "InsertOne",
    "ReplaceOne",
    "SearchIndexModel",
    "UpdateMany",
    "UpdateOne",
]
