from __future__ import annotations

import pytest
from bson.errors import InvalidBSON
from bson.raw_bson import RawBSONDocument

import gmongo
from gmongo.collation import Collation  # noqa: F401 - the case table uses the name
from gmongo.operations import (
    DeleteMany,
    DeleteOne,
    IndexModel,
    InsertOne,
    ReplaceOne,
    SearchIndexModel,
    UpdateMany,
    UpdateOne,
)
from gmongo.operations.models import checked_change
from tests.support.cases import with_cases

SET = {"$set": {"a": 1}}
MODEL_FACTORIES = [
    lambda filter=None, **options: DeleteOne(filter, **options),
    lambda filter=None, **options: DeleteMany(filter, **options),
    lambda filter=None, **options: ReplaceOne(filter, {}, **options),
    lambda filter=None, **options: UpdateOne(filter, SET, **options),
    lambda filter=None, **options: UpdateMany(filter, SET, **options),
]
MODEL_NAMES = ["DeleteOne", "DeleteMany", "ReplaceOne", "UpdateOne", "UpdateMany"]
for_each_filtered_model = pytest.mark.parametrize("make_model", MODEL_FACTORIES, ids=MODEL_NAMES)


@for_each_filtered_model
def test_filter_that_is_no_mapping_raises(make_model):
    assert make_model({"a": 1}).filter == {"a": 1}
    with pytest.raises(TypeError, match=r"filter must be a mapping.*not None"):
        make_model(None)


@for_each_filtered_model
@with_cases
def test_malformed_model_option_raises(make_model, options, error_class, message):
    with pytest.raises(error_class, match=rf"{message}(?!\w)"):
        make_model({}, **options)


@pytest.mark.parametrize("make_model", MODEL_FACTORIES[2:], ids=MODEL_NAMES[2:])
def test_upsert_that_is_no_boolean_raises(make_model):
    assert make_model({}).upsert is None
    assert make_model({}, upsert=True).upsert is True
    with pytest.raises(TypeError, match=r"upsert.*not 1"):
        make_model({}, upsert=1)


@pytest.mark.parametrize("model_class", [UpdateOne, UpdateMany])
def test_update_without_operator_or_pipeline_raises(model_class):
    assert model_class({}, SET).update == SET
    assert model_class({}, [SET]).update == [SET]
    for update, error, message in (
        ({"a": 1}, ValueError, "operator.*'a'"),
        ({1: 1}, ValueError, "operator"),
        ({}, ValueError, "not be empty"),
        ([], ValueError, "not be empty"),
        ("$set", TypeError, "'\\$set'"),
    ):
        with pytest.raises(error, match=rf"{message}(?!\w)"):
            checked_change(model_class({}, update))


def test_index_model_argument_of_wrong_type_raises_error_with_parameter_name():
    for model_class, name in ((IndexModel, "keys"), (SearchIndexModel, "definition")):
        with pytest.raises(TypeError, match=f"^{name} must be"):
            model_class(5)


def test_replacement_with_operator_raises():
    assert ReplaceOne({}, {}).replacement == {}
    assert ReplaceOne({}, {"a": {"$x": 1}}).replacement == {"a": {"$x": 1}}
    with pytest.raises(ValueError, match=r"replacement must not begin.*set"):
        checked_change(ReplaceOne({}, SET))
    with pytest.raises(TypeError, match="replacement must be a mapping"):
        checked_change(ReplaceOne({}, [SET]))


def test_raw_replacement_is_not_decoded():
    # The length and the last byte of the document are valid, but a decoder raises an error for the
    # field type 0xff.
    raw = RawBSONDocument(b"\x0b\0\0\0\xffabcde\0")
    with pytest.raises(InvalidBSON):
        raw["a"]
    assert ReplaceOne({}, raw).replacement is raw


COLLATION = {"collation": ({"locale": "en"}, {"locale": "de"})}
HINT_AND_NAMESPACE = {"hint": ("a_1", "b_1"), "namespace": ("d.c", "d.e")}
# Model class -> two different values of each tested argument.
ARGUMENT_VALUES = {
    InsertOne: {"document": ({"a": 1}, {"a": 2}), "namespace": ("d.c", "d.e")},
    DeleteOne: {"filter": ({}, {"a": 1}), **COLLATION, **HINT_AND_NAMESPACE},
    DeleteMany: {"filter": ({}, {"a": 1}), **COLLATION, **HINT_AND_NAMESPACE},
    ReplaceOne: {"filter": ({}, {"a": 1}), "replacement": ({}, {"a": 1}), "upsert": (True, False), **COLLATION,
                 **HINT_AND_NAMESPACE, "sort": ({"a": 1}, {"a": -1})},
    UpdateOne: {"filter": ({}, {"a": 1}), "update": (SET, {"$unset": {"a": 1}}), "upsert": (True, False), **COLLATION,
                "array_filters": ([{"x": 1}], [{"x": 2}]), **HINT_AND_NAMESPACE, "sort": ({"a": 1}, {"a": -1})},
    UpdateMany: {"filter": ({}, {"a": 1}), "update": (SET, {"$unset": {"a": 1}}), "upsert": (True, False), **COLLATION,
                 "array_filters": ([{"x": 1}], [{"x": 2}]), **HINT_AND_NAMESPACE},
    IndexModel: {"keys": ("a", "b"), "name": ("x", "y")},
    SearchIndexModel: {"definition": ({}, {"a": 1}), "name": ("x", "y"), "type": ("search", "vectorSearch")},
}  # fmt: skip


@pytest.mark.parametrize(
    ("model_class", "argument"), [(kind, name) for kind, fields in ARGUMENT_VALUES.items() for name in fields]
)
def test_each_argument_affects_equality_and_repr(model_class, argument):
    arguments = {each: values[0] for each, values in ARGUMENT_VALUES[model_class].items()}
    other_arguments = {**arguments, argument: ARGUMENT_VALUES[model_class][argument][1]}
    assert model_class(**arguments) == model_class(**arguments) != model_class(**other_arguments)
    assert repr(model_class(**arguments)) == repr(model_class(**arguments)) != repr(model_class(**other_arguments))


@with_cases
def test_index_keys_become_document_and_name(keys, document, name):
    assert IndexModel(keys).document == {"name": name, "key": document}
    assert UpdateOne({}, SET, sort=keys).sort == DeleteOne({}, hint=keys).hint == document


def test_constants_have_values_for_commands():
    directions = [gmongo.ASCENDING, gmongo.DESCENDING, gmongo.GEO2D, gmongo.GEOSPHERE, gmongo.HASHED, gmongo.TEXT]
    assert directions == [1, -1, "2d", "2dsphere", "hashed", "text"]
    assert (gmongo.ReturnDocument.BEFORE, gmongo.ReturnDocument.AFTER) == (False, True)


@with_cases
def test_malformed_keys_raise_exact_message(keys, error_class, message):
    functions = {
        "keys": IndexModel,
        "hint": lambda keys: DeleteOne({}, hint=keys),
        "sort": lambda keys: ReplaceOne({}, {}, sort=keys),
        "index_or_name": gmongo.MongoClient(connect=False).db.c.drop_index,
    }
    for option, function in functions.items():
        with pytest.raises(error_class) as caught:
            function(keys)
        assert str(caught.value) == option + message


def test_sort_by_field_name_raises_type_error():
    with pytest.raises(TypeError, match=r"^sort must be a mapping or a list of \(field, direction\) pairs, not 'a'$"):
        UpdateOne({}, SET, sort="a")


@with_cases
def test_repr_of_index_model_is_its_constructor_call(call, code):
    model = eval(call)
    assert repr(model) == code
    assert eval(code) == model
