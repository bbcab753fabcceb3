"""Objects of value classes are immutable. An event equals only itself.

Except for `Options`, two values are equal only if their classes and their contents are equal.
A comparison with an object of another class calls ``__eq__`` of the other object.
"""

from __future__ import annotations

import dataclasses
import importlib
import sys
from typing import Any

import pytest

from gmongo import InsertOne, MongoClient, monitoring
from gmongo._topology_type import TOPOLOGY_TYPE
from gmongo.collation import Collation
from gmongo.errors import InvalidOperation
from gmongo.options.mapping import Options
from gmongo.read_concern import ReadConcern
from gmongo.read_preferences import Nearest, Primary, Secondary
from gmongo.results import BulkWriteResult, ClientBulkWriteResult, DeleteResult, UpdateResult
from gmongo.sdam.server_description import ServerDescription
from gmongo.server_type import SERVER_TYPE
from gmongo.write_concern import WriteConcern
from tests.support.cases import with_cases
from tests.unit.test_layers import MODULES

# Data classes with mutable fields. The driver or the application sets the fields.
MUTABLE_CLASSES = {
    "gmongo.wire.ocsp.verifier:CheckedTls",  # A changed certificate file replaces the TLS context.
    "gmongo.wire.openssl:Peer",
    "gmongo.wire.tls:Tls",
    "gmongo.auth_oidc:OIDCIdPInfo",
    "gmongo.auth_oidc:OIDCCallbackContext",
    "gmongo.auth_oidc:OIDCCallbackResult",
    "gmongo.encryption_options:RangeOpts",
    "gmongo.encryption_options:StringOpts",
    "gmongo.execution.operation:OperationContext",
    "gmongo.stable_api.rules:Finding",
    "gmongo.engines.client_bulk:ClientBulk",
    "gmongo.engines.collection_bulk:_Run",
    "gmongo.engines.cursor_killer:CursorResources",
    "gmongo.engines.read_ahead:ReadAhead",
    "gmongo.engines.server_cursor:ServerCursor",
    "gmongo.engines.transaction:_RetryLoop",
    "gmongo.events.delivery:_GreenletEvents",
    "gmongo.execution.retry:BackpressurePolicy",
    "gmongo.execution.operation_trace:OperationTrace",
    "gmongo.execution.sessions:SessionState",
    "gmongo.execution.transaction:Transaction",
}


def data_classes() -> dict[str, type]:
    """Return gmongo's data classes by name, except `gmongo.testing` and `gmongo.as_pymongo`."""
    data_classes_by_name: dict[str, type] = {}
    for name in MODULES:
        if name.startswith(("gmongo.testing", "gmongo.as_pymongo")):
            continue
        try:
            module = importlib.import_module(name)
        except ImportError:  # the package of an extra is not installed
            continue
        for each in vars(module).values():
            if isinstance(each, type) and dataclasses.is_dataclass(each) and each.__module__ == module.__name__:
                data_classes_by_name[f"{each.__module__}:{each.__qualname__}"] = each
    return data_classes_by_name


def is_event(name: str) -> bool:
    return name.startswith(monitoring.__name__)


def test_only_listed_data_classes_are_mutable() -> None:
    classes = data_classes()
    frozen = {name for name, each in classes.items() if each.__dataclass_params__.frozen}
    assert {name for name in classes if not is_event(name)} - frozen == MUTABLE_CLASSES & classes.keys()
    for name in frozen:
        each = object.__new__(classes[name])
        for field in dataclasses.fields(classes[name]):
            try:
                setattr(each, field.name, None)
            except dataclasses.FrozenInstanceError:
                continue
            raise AssertionError(f"{name}.{field.name} can be changed")


@with_cases
def test_representation_of_internal_state_shows_no_content(name: str) -> None:
    """Check classes with documents or TLS secrets, because error reports show local variables."""
    assert data_classes()[name].__repr__ is object.__repr__


def test_event_equals_only_itself_and_has_slots() -> None:
    events = {name: each for name, each in data_classes().items() if is_event(name)}
    assert len(events) > 20
    for name, each in events.items():
        first, other = (object.__new__(each) for _ in range(2))
        assert first == first and first != other and hash(first) != hash(other), name
        assert not hasattr(first, "__dict__") or sys.version_info < (3, 11), name
        assert each.__repr__ is not object.__repr__ and not each.__dataclass_params__.repr, name


def test_change_of_returned_document_does_not_change_value_object() -> None:
    preference, collation = Secondary([{"dc": "east"}]), Collation("en")
    for each in (preference.document, collation.document, preference.tag_sets):
        each.clear()  # type: ignore[attr-defined]
    assert preference.document == {"mode": "secondary", "tags": [{"dc": "east"}]}
    assert collation.document == {"locale": "en"}


def test_hedge_warns_of_deprecation_and_is_part_of_read_preference() -> None:
    with pytest.warns(DeprecationWarning, match="hedged reads") as caught:
        preference = Nearest(hedge={"enabled": True})
    assert preference.document == {"mode": "nearest", "hedge": {"enabled": True}}
    assert preference.hedge == {"enabled": True}
    assert preference != Nearest()
    assert caught[0].filename == __file__


@pytest.mark.parametrize("options", [{"caseFirst": True}, {"strength": True}, {"strength": "1"}])
def test_collation_error_names_option_of_wrong_type(options: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=f"collation {next(iter(options))} must be"):
        Collation("en", **options)


@with_cases
def test_update_result_reads_upserted_id_of_client_bulk(
    reply_of_statement: dict[str, Any], in_client_bulk: bool, matched_count: int, upserted_id: Any
) -> None:
    result = UpdateResult(reply_of_statement, True, in_client_bulk)
    assert (result.matched_count, result.upserted_id, result.did_upsert) == (matched_count, upserted_id, True)


BULK_COUNTS = {"inserted_count": 1, "matched_count": 2, "modified_count": 3, "deleted_count": 4, "upserted_count": 5}
BULK_REPLY = {"nInserted": 1, "nMatched": 2, "nModified": 3, "nRemoved": 4, "nUpserted": 5, "nDeleted": 6}
VERBOSE_RESULTS = {"insert_results": {0: 1}, "update_results": {1: 1}, "delete_results": {2: 1}}
VERBOSE_REPLY = {"insertResults": {0: 1}, "updateResults": {1: 1}, "deleteResults": {2: 1}}
RESULTS: list[tuple[Any, dict[str, Any], dict[str, Any], tuple[Any, ...]]] = [
    (UpdateResult, {"n": 2, "nModified": 1}, {"matched_count": 2, "modified_count": 1}, ()),
    (UpdateResult, {"upserted": 7}, {"matched_count": 0, "upserted_id": 7, "did_upsert": True}, ()),
    (DeleteResult, {"n": 2}, {"deleted_count": 2}, ()),
    (BulkWriteResult, BULK_REPLY, BULK_COUNTS, ()),
    (BulkWriteResult, {"upserted": [{"index": 2, "_id": 7}]}, {"upserted_ids": {2: 7}}, ()),
    (ClientBulkWriteResult, BULK_REPLY, {**BULK_COUNTS, "deleted_count": 6}, (False,)),
    (ClientBulkWriteResult, VERBOSE_REPLY, VERBOSE_RESULTS, (True,)),
]


@pytest.mark.parametrize(("kind", "reply", "attributes", "verbose"), RESULTS)
def test_result_attribute_requires_acknowledgement_and_is_empty_without_field_of_reply(
    kind: Any, reply: dict[str, Any], attributes: dict[str, Any], verbose: tuple[Any, ...]
) -> None:
    result = kind(reply, True, *verbose)
    assert {name: getattr(result, name) for name in attributes} == attributes
    assert getattr(result, "raw_result" if hasattr(kind, "raw_result") else "bulk_api_result") is reply
    suffix = "".join(f", verbose={result.has_verbose_results}" for _ in verbose)
    assert repr(result) == f"{kind.__name__}({reply}, acknowledged=True{suffix})"
    for name, value in attributes.items():
        assert getattr(kind({}, True, *verbose), name) == (None if name == "upserted_id" else type(value)())
        with pytest.raises(InvalidOperation) as caught:
            getattr(kind(reply, False, *verbose), name)
        assert str(caught.value) == f"{name} is not known, because the write was not acknowledged (w=0)"


def test_result_of_single_writes_requires_verbose_results() -> None:
    for name in VERBOSE_RESULTS:
        with pytest.raises(InvalidOperation, match=f"^{name} is not known, because verbose_results was not True$"):
            getattr(ClientBulkWriteResult(VERBOSE_REPLY, True, False), name)


def test_server_and_topology_types_have_numbers_of_pymongo() -> None:
    kinds = "Unknown Mongos RSPrimary RSSecondary RSArbiter RSOther RSGhost Standalone LoadBalancer"
    assert SERVER_TYPE._asdict() == {name: number for number, name in enumerate(kinds.split())}
    kinds = "Single ReplicaSetNoPrimary ReplicaSetWithPrimary Sharded Unknown LoadBalanced"
    assert TOPOLOGY_TYPE._asdict() == {name: number for number, name in enumerate(kinds.split())}
    assert TOPOLOGY_TYPE.name_of(TOPOLOGY_TYPE.Sharded) == "Sharded"
    assert SERVER_TYPE.name_of(SERVER_TYPE.RSGhost) == "RSGhost"


CLIENT: MongoClient[Any] = MongoClient("a", connect=False)
# Pairs of unequal values of one kind.
UNEQUAL_PAIRS: list[tuple[Any, Any]] = [
    (CLIENT, MongoClient("b", connect=False)),
    (CLIENT.a, CLIENT.b),
    (CLIENT.a.c, CLIENT.a.d),
    (CLIENT.a.c, CLIENT.b.c),
    (Collation("fr"), Collation("de")),
    (InsertOne({"a": 1}), InsertOne({"a": 2})),
    (Nearest(), Primary()),
    (Nearest([{"a": "b"}]), Nearest([{"a": "c"}])),
    (Nearest(max_staleness=100), Nearest(max_staleness=101)),
    (Options({"w": 1}), Options({"w": 2})),
    (ReadConcern("local"), ReadConcern()),
    (ServerDescription(("a", 1)), ServerDescription(("b", 1))),
    (CLIENT.topology_description, MongoClient("b", connect=False).topology_description),
    (WriteConcern(w=1), WriteConcern(w=2)),
]


class EqualToEverything:
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize(("value", "different_value"), UNEQUAL_PAIRS, ids=lambda value: type(value).__name__)
def test_value_equals_only_equal_value_of_same_kind(value: Any, different_value: Any) -> None:
    assert value == value and value != different_value
    for foreign_value in (object(), None, "a", 5):
        assert value != foreign_value
    assert value == EqualToEverything()
    if type(value).__hash__ is not None:
        assert hash(value) == hash(value) != hash(different_value)


def test_collation_has_hash_and_repr_of_its_document() -> None:
    collation = Collation("en", backwards=True, strength=2)
    assert repr(collation) == "Collation(locale='en', strength=2, backwards=True)"
    assert hash(collation) == hash(Collation("en", strength=2, backwards=True))


def test_options_equal_mapping_with_same_items() -> None:
    options = Options({"maxPoolSize": 5, "W": 1})
    assert options == {"MAXPOOLSIZE": 5, "w": 1}
    assert options != {"w": 1}
    assert len(options) == 2
    del options["w"]
    assert options == {"maxpoolsize": 5} and len(options) == 1
    assert "w" not in options and 5 not in options
    assert [*options.copy().items()] == [("maxpoolsize", 5)] and options.copy() is not options
