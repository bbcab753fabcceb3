"""What one driver encrypts the other reads: PyMongo, with the same master key and the same key vault."""

from __future__ import annotations

import bson
import pymongo
import pytest
from bson.codec_options import CodecOptions

from gmongo.encryption import Algorithm, QueryType
from gmongo.encryption_options import RangeOpts, StringOpts
from gmongo.errors import EncryptionError
from tests.encryption.values import DETERMINISTIC, EVERY_TYPE, RANDOM

DETERMINISTICALLY = Algorithm.AEAD_AES_256_CBC_HMAC_SHA_512_Deterministic
AT_RANDOM = Algorithm.AEAD_AES_256_CBC_HMAC_SHA_512_Random


@pytest.fixture(params=["gmongo's key", "PyMongo's key"])
def key(request, encryption, theirs):
    maker = encryption if request.param == "gmongo's key" else theirs.encryption
    return maker.create_data_key("local", key_alt_names=["shared"])


def same(one, other):
    return bson.encode({"v": one}) == bson.encode({"v": other})


def test_every_type_at_random(encryption, theirs, key):
    for name in RANDOM:
        value = EVERY_TYPE[name]
        assert same(theirs.encryption.decrypt(encryption.encrypt(value, AT_RANDOM, key)), value), name
        assert same(encryption.decrypt(theirs.encryption.encrypt(value, AT_RANDOM.value, key)), value), name


def test_every_type_deterministically_is_the_same_byte_for_byte(encryption, theirs, key):
    for name in DETERMINISTIC:
        value = EVERY_TYPE[name]
        ours = encryption.encrypt(value, DETERMINISTICALLY, key_alt_name="shared")
        assert ours == theirs.encryption.encrypt(value, DETERMINISTICALLY.value, key), name
        assert same(theirs.encryption.decrypt(ours), value), name
        assert same(encryption.decrypt(ours), value), name


def test_what_is_refused_is_refused_by_both(encryption, theirs, key):
    refused = [(DETERMINISTICALLY, name) for name in EVERY_TYPE if name not in DETERMINISTIC]
    refused += [(AT_RANDOM, name) for name in EVERY_TYPE if name not in RANDOM]
    assert len(refused) > 10
    for algorithm, name in refused:
        errors = []
        for encrypt in (encryption.encrypt, theirs.encryption.encrypt):
            with pytest.raises((EncryptionError, pymongo.errors.EncryptionError)) as caught:
                encrypt(EVERY_TYPE[name], algorithm.value, key)
            errors.append((type(caught.value).__name__, str(caught.value)))
        assert errors[0] == errors[1]


def test_documents_by_way_of_the_server(client, encryption, theirs, key):
    client.shop.people.drop()
    client.shop.people.insert_one({"_id": 1, "ssn": encryption.encrypt("457-55-5462", DETERMINISTICALLY, key)})
    theirs.client.shop.people.insert_one({"_id": 2, "ssn": theirs.encryption.encrypt("1-2-3", DETERMINISTICALLY, key)})
    found = theirs.client.shop.people.find_one(
        {"ssn": theirs.encryption.encrypt("457-55-5462", DETERMINISTICALLY, key)}
    )
    assert (found["_id"], theirs.encryption.decrypt(found["ssn"])) == (1, "457-55-5462")
    found = client.shop.people.find_one({"ssn": encryption.encrypt("1-2-3", DETERMINISTICALLY, key)})
    assert (found["_id"], encryption.decrypt(found["ssn"])) == (2, "1-2-3")


STRINGS = {"strMinQueryLength": 2, "strMaxQueryLength": 5}
QUERYABLE = {
    "indexed": ("Indexed", "secret", {"contention_factor": 0}, {"query_type": QueryType.EQUALITY}),
    "unindexed": ("Unindexed", "secret", {}, None),
    "range of int": (
        "Range",
        7,
        {"contention_factor": 4, "range_opts": RangeOpts(sparsity=1, trim_factor=1, min=0, max=200)},
        None,
    ),
    "range of double": (
        "Range",
        7.5,
        {"contention_factor": 4, "range_opts": RangeOpts(sparsity=1, min=0.0, max=200.0, precision=2)},
        None,
    ),
    "prefix": (
        "String",
        "secret",
        {
            "contention_factor": 0,
            "string_opts": StringOpts(prefix=STRINGS, case_sensitive=True, diacritic_sensitive=True),
        },
        None,
    ),
    "substring": (
        "String",
        "secret",
        {
            "contention_factor": 0,
            "string_opts": StringOpts(
                substring={"strMaxLength": 10, **STRINGS}, case_sensitive=True, diacritic_sensitive=True
            ),
        },
        None,
    ),
}


@pytest.mark.parametrize("name", QUERYABLE)
def test_payloads_of_queryable_encryption(encryption, theirs, key, name):
    """What is to be inserted can be decrypted by the other driver, whatever the server makes of it afterwards."""
    algorithm, value, options, query = QUERYABLE[name]
    if "string_opts" in options:
        import pymongo.encryption_options as theirs_options

        ours = options["string_opts"]
        others = theirs_options.StringOpts(
            ours.substring, ours.prefix, ours.suffix, ours.case_sensitive, ours.diacritic_sensitive
        )
        their_options = {**options, "string_opts": others}
    elif "range_opts" in options:
        import pymongo.encryption_options as theirs_options

        ours = options["range_opts"]
        others = theirs_options.RangeOpts(ours.sparsity, ours.trim_factor, ours.min, ours.max, ours.precision)
        their_options = {**options, "range_opts": others}
    else:
        their_options = options
    mine = encryption.encrypt(value, algorithm, key, **options)
    yours = theirs.encryption.encrypt(value, algorithm, key, **their_options)
    assert mine.subtype == yours.subtype == 6
    assert mine[0] == yours[0]
    assert len(mine) == len(yours)
    assert same(theirs.encryption.decrypt(mine), value)
    assert same(encryption.decrypt(yours), value)
    if query is not None:  # what is searched for does not depend on chance
        assert encryption.encrypt(value, algorithm, key, **options, **query) == theirs.encryption.encrypt(
            value, algorithm, key, **options, query_type=query["query_type"].value
        )


def test_expressions(encryption, theirs, key):
    import pymongo.encryption_options as theirs_options

    expression = {"$and": [{"age": {"$gte": 3}}, {"age": {"$lt": 7}}]}
    options = {"min": 0, "max": 200, "sparsity": 1, "trim_factor": 1}
    chosen = {"contention_factor": 4, "query_type": "range", "algorithm": "Range", "key_id": key}
    ours = encryption.encrypt_expression(expression, **chosen, range_opts=RangeOpts(**options))
    yours = theirs.encryption.encrypt_expression(expression, **chosen, range_opts=theirs_options.RangeOpts(**options))
    assert type(ours) is type(yours)
    assert without_numbers(ours) == without_numbers(yours)


def without_numbers(expression):
    """The payloads of an expression, decoded; each process numbers them."""
    payloads = [bson.decode(value[1:]) for each in expression["$and"] for value in each["age"].values()]
    assert payloads[0].pop("payloadId") == payloads[1].pop("payloadId")
    return [list(each["age"]) for each in expression["$and"]], payloads


def test_keys(client, encryption, theirs):
    """Key documents look the same, and can be managed by both."""
    mine = encryption.create_data_key("local", key_alt_names=["mine"])
    yours = theirs.encryption.create_data_key("local", key_alt_names=["yours"])
    assert (type(mine), mine.subtype) == (type(yours), yours.subtype)
    for key_id in (mine, yours):
        one, other = encryption.get_key(key_id), theirs.encryption.get_key(key_id)
        assert one == other
        assert type(one) is type(other)
        assert {name: type(value) for name, value in one.items()} == {name: type(v) for name, v in other.items()}
    assert encryption.get_key(mine).keys() == encryption.get_key(yours).keys()
    before = encryption.add_key_alt_name(mine, "another")
    assert theirs.encryption.remove_key_alt_name(mine, "mine")["keyAltNames"] == ["mine", "another"]
    assert before["keyAltNames"] == ["mine"]
    assert encryption.remove_key_alt_name(mine, "another")["keyAltNames"] == ["another"]
    assert "keyAltNames" not in theirs.encryption.get_key(mine)
    assert theirs.encryption.get_key_by_alt_name("yours") == encryption.get_key_by_alt_name("yours")
    assert encryption.get_key_by_alt_name("mine") is theirs.encryption.get_key_by_alt_name("mine") is None
    assert list(encryption.get_keys()) == list(theirs.encryption.get_keys())
    assert encryption.delete_key(yours).deleted_count == 1
    assert theirs.encryption.get_key(yours) is None


def test_a_rewrapped_key_still_decrypts(encryption, theirs, key):
    secret = encryption.encrypt("secret", AT_RANDOM, key)
    material = encryption.get_key(key)["keyMaterial"]
    result = encryption.rewrap_many_data_key({"keyAltNames": "shared"}, provider="local")
    assert result.bulk_write_result.modified_count == 1
    assert encryption.get_key(key)["keyMaterial"] != material
    assert theirs.encryption.decrypt(secret) == "secret"
    theirs.encryption.rewrap_many_data_key({})
    assert encryption.decrypt(secret) == "secret"


def test_options_of_the_codec_hold_for_values(client, theirs, encryption, key):
    import uuid

    from bson.binary import UuidRepresentation

    from gmongo.encryption import ClientEncryption
    from tests.encryption.conftest import LOCAL, VAULT

    options = CodecOptions(uuid_representation=UuidRepresentation.STANDARD, tz_aware=True)
    with ClientEncryption(LOCAL, VAULT, client, options) as chosen:
        value = uuid.uuid4()
        secret = chosen.encrypt(value, AT_RANDOM, key)
        assert chosen.decrypt(secret) == value
        assert same(theirs.encryption.decrypt(secret), bson.Binary.from_uuid(value))
