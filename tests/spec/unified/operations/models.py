"""Convert the models of bulk writes and of search indexes to model objects of the driver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gmongo import DeleteMany, DeleteOne, InsertOne, ReplaceOne, UpdateMany, UpdateOne
from gmongo.operations import SearchIndexModel
from tests.spec.unified.schema import FormatError
from tests.spec.unified.values import check_known, snake_case

_FILTER_FIELDS = ("filter", "collation", "hint")
_UPDATE_FIELDS = (*_FILTER_FIELDS, "update", "upsert", "arrayFilters")

_WRITE_MODELS: dict[str, tuple[type, frozenset[str]]] = {
    "insertOne": (InsertOne, frozenset({"document"})),
    "replaceOne": (ReplaceOne, frozenset({*_FILTER_FIELDS, "replacement", "upsert", "sort"})),
    "updateOne": (UpdateOne, frozenset({*_UPDATE_FIELDS, "sort"})),
    "updateMany": (UpdateMany, frozenset(_UPDATE_FIELDS)),
    "deleteOne": (DeleteOne, frozenset(_FILTER_FIELDS)),
    "deleteMany": (DeleteMany, frozenset(_FILTER_FIELDS)),
}


def write_models(requests: list[Mapping[str, Any]], with_namespaces: bool = False) -> list[Any]:
    """Convert the models of a bulk write to model objects of the driver."""
    return [_write_model(request, with_namespaces) for request in requests]


def _write_model(request: Mapping[str, Any], with_namespaces: bool) -> Any:
    if len(request) != 1 or next(iter(request)) not in _WRITE_MODELS:
        raise FormatError(f"not a write model: {request}")
    ((name, fields),) = request.items()
    model_class, known = _WRITE_MODELS[name]
    check_known(fields, known | {"namespace"} if with_namespaces else known, name)
    return model_class(**{snake_case(field): value for field, value in fields.items()})


def search_index_model(model: Mapping[str, Any]) -> SearchIndexModel:
    """Convert the definition of a search index in a case to a SearchIndexModel."""
    check_known(model, {"definition", "name", "type"}, "a search index")
    return SearchIndexModel(**model)
