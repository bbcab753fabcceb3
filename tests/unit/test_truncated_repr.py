"""A truncated text is a prefix of the whole text. The length of the prefix determines the time."""

from __future__ import annotations

import datetime
import reprlib
from collections import OrderedDict
from collections.abc import Callable, Iterator
from string import ascii_letters
from typing import Any

import bson
import pytest
from bson import Binary, Code, DBRef, Decimal128, Int64, ObjectId, Regex, Timestamp, json_util
from bson.raw_bson import RawBSONDocument
from bson.son import SON
from hypothesis import given
from hypothesis import strategies as st

from gmongo import InsertOne, UpdateOne
from gmongo._truncated_repr import document_text, short

LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    st.text(),
    st.text(min_size=60, max_size=300),
    st.binary(min_size=60, max_size=300),
    st.builds(Binary, st.binary(max_size=200), st.sampled_from([0, 5, 6, 128])),
    st.sampled_from(
        [
            ObjectId("0" * 24), Decimal128("1.5"), Int64(3), Regex("^a", "i"), Timestamp(1, 2),
            Code("f()" * 100), Code("f()", {"a": 1}), DBRef("c", 1, "d", more={"a": [1, 2]}),
            datetime.datetime(2026, 1, 2), Binary(b"0" * 16, 4),
        ]
    ),
)  # fmt: skip
DOCUMENTS = st.dictionaries(
    st.text(), st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=30)
)


@given(DOCUMENTS, st.integers(0, 400))
def test_truncated_text_is_prefix_of_whole_text(document: dict[str, Any], length: int) -> None:
    assert document_text(document, length) == json_util.dumps(document)[:length]


class VisitCounter:
    def __init__(self) -> None:
        self.count = 0

    def count_each(self, values: Any) -> Iterator[Any]:
        for each in values:
            self.count += 1
            yield each


class CountingList(list[Any]):
    visit_counter: VisitCounter

    def __iter__(self) -> Iterator[Any]:
        return self.visit_counter.count_each(super().__iter__())


class CountingDict(dict[str, Any]):
    visit_counter: VisitCounter

    def items(self) -> Any:
        return self.visit_counter.count_each(super().items())

    def __iter__(self) -> Iterator[str]:
        return self.visit_counter.count_each(super().__iter__())


def counted_copy(visit_counter: VisitCounter, value: Any) -> Any:
    """Return a copy of a document. `visit_counter` counts the visits to its elements."""
    if isinstance(value, dict):
        copy: Any = CountingDict({name: counted_copy(visit_counter, each) for name, each in value.items()})
    elif isinstance(value, list):
        copy = CountingList([counted_copy(visit_counter, each) for each in value])
    else:
        return value
    copy.visit_counter = visit_counter
    return copy


LARGE_DOCUMENTS: dict[str, Callable[[], Any]] = {
    "many documents": lambda: {"insert": "c", "documents": [{"_id": i, "a": "x" * 50} for i in range(4_000)]},
    "many numbers": lambda: {"a": [1] * 20_000},
    "many fields": lambda: {f"f{number}": number for number in range(20_000)},
    "empty documents": lambda: {"a": [{}] * 20_000},
    "lists in lists": lambda: {"a": [[[1] * 30] * 30] * 30},
    "deep": lambda: deeply_nested(90),
}


def deeply_nested(levels: int) -> Any:
    value: Any = [1] * 5_000
    for _ in range(levels):
        value = {"a": value, "b": value}
    return value


@pytest.mark.parametrize("make_document", LARGE_DOCUMENTS.values(), ids=LARGE_DOCUMENTS.keys())
@pytest.mark.parametrize("length", [0, 1, 100, 1000])
def test_truncation_visits_no_more_elements_than_truncated_text_shows(
    make_document: Callable[[], Any], length: int
) -> None:
    visit_counter = VisitCounter()
    document = make_document()
    if document.keys() == {"a", "b"}:  # a copy would contain 2**90 lists
        document = {"deep": counted_copy(visit_counter, [1] * 5_000), **document}
    else:
        document = counted_copy(visit_counter, document)
    assert len(document_text(document, length)) == length
    assert visit_counter.count <= length + 2


def test_large_raw_document_is_not_decoded() -> None:
    raw = RawBSONDocument(bson.encode({"a": ["x"] * 100_000}))
    assert document_text({"documents": [raw]}, 100) == f'{{"documents": ["({len(raw.raw)} bytes of BSON)"]}}'
    assert raw._RawBSONDocument__inflated_doc is None  # type: ignore[attr-defined]
    small = RawBSONDocument(bson.encode({"a": [1, 2]}))
    assert document_text({"documents": [small]}, 100) == '{"documents": [{"a": [1, 2]}]}'


@pytest.mark.parametrize(
    "value", [object(), range(3), {1, 2}, deeply_nested(2000)], ids=["object", "range", "set", "deep"]
)
def test_document_text_accepts_value_that_bson_cannot_encode(value: Any) -> None:
    assert isinstance(document_text({"a": value}, 50), str)


@pytest.mark.parametrize(("size", "is_shown"), [(64 * 1024, True), (64 * 1024 + 1, False)])
def test_raw_document_is_shown_up_to_64_kib(size: int, is_shown: bool) -> None:
    raw = RawBSONDocument(bson.encode({"a": "x" * (size - len(bson.encode({"a": ""})))}))
    assert len(raw.raw) == size
    text = document_text({"d": raw}, 30)
    assert text == ('{"d": {"a": "' + "x" * 17 if is_shown else f'{{"d": "({size} bytes of BSON)"}}'[:30])


@given(DOCUMENTS | LEAVES)
def test_short_repr_has_limited_length(value: Any) -> None:
    assert len(short(value)) < 4**6 * 40


VALUES = [1, -5, "a" * 100, "it's", None, True, 1.5, [1] * 10, (1,), {"a": 1}, {"b": [1, {"c": 2}]}, b"ab", [], {}, ""]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_short_repr_of_plain_value_equals_reprlib(value: Any) -> None:
    assert short(value) == reprlib.repr(value)


@pytest.mark.parametrize(("size", "text"), [(30, repr(b"x" * 30)), (31, repr(b"x" * 30) + "...")])
def test_short_repr_of_bytes_shows_at_most_30_bytes(size: int, text: str) -> None:
    assert short(b"x" * size) == text


EXACT_TEXTS = [
    ({1, 2}, "[1, 2]"), (frozenset(range(7)), "[0, 1, 2, 3, 4, 5, ...]"),
    (type("Items", (list,), {})(range(7)), "Items([0, 1, 2, 3, 4, 5, ...])"), (SON(a=SON()), "SON({'a': SON({})})"),
    (2**200 - 1, reprlib.repr(2**200 - 1)), (2**200, "<integer of 201 bits>"),
    (bytearray(b"x" * 31), f"b'{'x' * 30}'..."), (memoryview(b"x"), "b'x'"),
    (Code(ascii_letters), reprlib.repr(ascii_letters[:31])),
    (RawBSONDocument(bson.encode({})), "RawBSONDocument(b'\\x05\\x00\\x00\\x00\\x00')"),
    ({1: {2: {3: {4: {5: {6: {7: 8}}}}}}}, "{1: {2: {3: {4: {5: {6: {...}}}}}}}"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "text"), EXACT_TEXTS, ids=[text for _, text in EXACT_TEXTS])
def test_short_repr_has_exact_text(value: Any, text: str) -> None:
    assert short(value) == text


def test_document_text_shows_100_levels_and_siblings_of_each_level() -> None:
    deep: Any = [[], [1]]
    for _ in range(97):
        deep = [deep, 1]
    assert document_text({"a": deep}, 2000) == json_util.dumps({"a": deep})
    deeper = json_util.dumps({"a": [deep]}).replace("[[], [1]]", '["(more than 100 levels)", "(more than 100 levels)"]')
    assert document_text({"a": [deep]}, 2000) == deeper


def many_fields(mapping_class: Callable[..., Any], count: int = 10_000) -> Any:
    return mapping_class((f"f{number}", number) for number in range(count))


@pytest.mark.parametrize("mapping_class", [dict, SON, OrderedDict])
def test_short_repr_of_mapping_does_not_call_repr_of_mapping(mapping_class: Callable[..., Any]) -> None:
    class MappingWithoutRepr(mapping_class):  # type: ignore[misc,valid-type]
        def __repr__(self) -> str:
            raise AssertionError("the whole value was shown")

    assert (
        short(many_fields(MappingWithoutRepr, 2000)) == "MappingWithoutRepr({'f0': 0, 'f1': 1, 'f2': 2, 'f3': 3, ...})"
    )


def test_error_about_write_model_does_not_show_document(monkeypatch: pytest.MonkeyPatch) -> None:
    from gmongo.errors import InvalidOperation
    from gmongo.operations.client_bulk import checked_models

    for model in (InsertOne({"secret": 1}), UpdateOne({}, {"$set": {"secret": 1}})):
        monkeypatch.setattr(type(model), "__repr__", lambda _self: pytest.fail("the whole value was shown"))
        with pytest.raises(InvalidOperation, match=rf"models.0. \({type(model).__name__}\) has no namespace"):
            checked_models([model])
