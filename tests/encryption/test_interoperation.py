"""gmongo and PyMongo share a master key and a key vault, and decrypt each other's values."""

from __future__ import annotations

import uuid

import bson
import pymongo.encryption_options as pymongo_options
import pytest
from bson.binary import UuidRepresentation
from bson.codec_options import CodecOptions

import gmongo.encryption_options as gmongo_options
from gmongo.encryption import Algorithm, ClientEncryption
from gmongo.encryption_options import RangeOpts
from tests.encryption.conftest import KMS_PROVIDERS, VAULT
from tests.encryption.values import BSON_VALUES, DETERMINISTIC_NAMES, RANDOMIZED_NAMES, is_equal_bson
from tests.support.cases import with_cases

DETERMINISTIC = Algorithm.AEAD_AES_256_CBC_HMAC_SHA_512_Deterministic
RANDOMIZED = Algorithm.AEAD_AES_256_CBC_HMAC_SHA_512_Random


@pytest.fixture(params=["gmongo", "PyMongo"])
def key(request, encryption, peer):
    maker = encryption if request.param == "gmongo" else peer.encryption
    return maker.create_data_key("local", key_alt_names=["shared"])


def test_randomized_value_of_each_type_is_decrypted_by_both_drivers(encryption, peer, key):
    for name in RANDOMIZED_NAMES:
        value = BSON_VALUES[name]
        assert is_equal_bson(peer.encryption.decrypt(encryption.encrypt(value, RANDOMIZED, key)), value), name
        assert is_equal_bson(encryption.decrypt(peer.encryption.encrypt(value, RANDOMIZED.value, key)), value), name


def test_deterministic_ciphertext_of_each_type_is_equal_in_both_drivers(encryption, peer, key):
    for name in DETERMINISTIC_NAMES:
        value = BSON_VALUES[name]
        ours = encryption.encrypt(value, DETERMINISTIC, key_alt_name="shared")
        assert ours == peer.encryption.encrypt(value, DETERMINISTIC.value, key), name
        assert is_equal_bson(peer.encryption.decrypt(ours), value), name
        assert is_equal_bson(encryption.decrypt(ours), value), name


def test_each_driver_finds_and_decrypts_documents_of_other_driver(client, encryption, peer, key):
    client.shop.people.drop()
    client.shop.people.insert_one({"_id": 1, "ssn": encryption.encrypt("457-55-5462", DETERMINISTIC, key)})
    peer.client.shop.people.insert_one({"_id": 2, "ssn": peer.encryption.encrypt("1-2-3", DETERMINISTIC, key)})
    document = peer.client.shop.people.find_one({"ssn": peer.encryption.encrypt("457-55-5462", DETERMINISTIC, key)})
    assert (document["_id"], peer.encryption.decrypt(document["ssn"])) == (1, "457-55-5462")
    document = client.shop.people.find_one({"ssn": encryption.encrypt("1-2-3", DETERMINISTIC, key)})
    assert (document["_id"], encryption.decrypt(document["ssn"])) == (2, "1-2-3")


@with_cases
def test_queryable_payloads_of_both_drivers_have_equal_form_and_values(
    encryption, peer, key, algorithm, value, options, options_class, algorithm_options, query_type
):
    """Compare the payloads of gmongo and PyMongo, and let each driver decrypt the payload of the
    other driver.
    """
    peer_options = {**options}
    if options_class is not None:
        parameter = "range_opts" if options_class == "RangeOpts" else "string_opts"
        options = {**options, parameter: getattr(gmongo_options, options_class)(**algorithm_options)}
        peer_options[parameter] = getattr(pymongo_options, options_class)(**algorithm_options)
    own = encryption.encrypt(value, algorithm, key, **options)
    foreign = peer.encryption.encrypt(value, algorithm, key, **peer_options)
    assert own.subtype == foreign.subtype == 6
    assert own[0] == foreign[0]
    assert len(own) == len(foreign)
    assert is_equal_bson(peer.encryption.decrypt(own), value)
    assert is_equal_bson(encryption.decrypt(foreign), value)
    if query_type is not None:  # A payload for a query has no random part.
        query_options = {**options, "query_type": query_type}
        assert encryption.encrypt(value, algorithm, key, **query_options) == peer.encryption.encrypt(
            value, algorithm, key, **query_options
        )


def test_encrypted_expressions_of_both_drivers_are_equal_except_payload_ids(encryption, peer, key):
    expression = {"$and": [{"age": {"$gte": 3}}, {"age": {"$lt": 7}}]}
    options = {"min": 0, "max": 200, "sparsity": 1, "trim_factor": 1}
    arguments = {"contention_factor": 4, "query_type": "range", "algorithm": "Range", "key_id": key}
    ours = encryption.encrypt_expression(expression, **arguments, range_opts=RangeOpts(**options))
    foreign = peer.encryption.encrypt_expression(
        expression, **arguments, range_opts=pymongo_options.RangeOpts(**options)
    )
    assert type(ours) is type(foreign)
    assert decoded_payloads(ours) == decoded_payloads(foreign)


def decoded_payloads(expression):
    """Return the operators of an expression, and the decoded payloads without the random payload
    ID.
    """
    payloads = [bson.decode(value[1:]) for each in expression["$and"] for value in each["age"].values()]
    assert payloads[0].pop("payloadId") == payloads[1].pop("payloadId")
    return [list(each["age"]) for each in expression["$and"]], payloads


def test_both_drivers_read_and_change_key_documents(client, encryption, peer):
    own = encryption.create_data_key("local", key_alt_names=["own"])
    foreign = peer.encryption.create_data_key("local", key_alt_names=["foreign"])
    assert (type(own), own.subtype) == (type(foreign), foreign.subtype)
    for key_id in (own, foreign):
        first, second = encryption.get_key(key_id), peer.encryption.get_key(key_id)
        assert first == second
        assert type(first) is type(second)
        assert {name: type(value) for name, value in first.items()} == {name: type(v) for name, v in second.items()}
    assert encryption.get_key(own).keys() == encryption.get_key(foreign).keys()
    before = encryption.add_key_alt_name(own, "another")
    assert peer.encryption.remove_key_alt_name(own, "own")["keyAltNames"] == ["own", "another"]
    assert before["keyAltNames"] == ["own"]
    assert encryption.remove_key_alt_name(own, "another")["keyAltNames"] == ["another"]
    assert "keyAltNames" not in peer.encryption.get_key(own)
    assert peer.encryption.get_key_by_alt_name("foreign") == encryption.get_key_by_alt_name("foreign")
    assert encryption.get_key_by_alt_name("own") is peer.encryption.get_key_by_alt_name("own") is None
    assert list(encryption.get_keys()) == list(peer.encryption.get_keys())
    assert encryption.delete_key(foreign).deleted_count == 1
    assert peer.encryption.get_key(foreign) is None


def test_value_is_decrypted_after_rewrap_of_data_key(encryption, peer, key):
    secret = encryption.encrypt("secret", RANDOMIZED, key)
    material = encryption.get_key(key)["keyMaterial"]
    result = encryption.rewrap_many_data_key({"keyAltNames": "shared"}, provider="local")
    assert result.bulk_write_result.modified_count == 1
    assert encryption.get_key(key)["keyMaterial"] != material
    assert peer.encryption.decrypt(secret) == "secret"
    peer.encryption.rewrap_many_data_key({})
    assert encryption.decrypt(secret) == "secret"


def test_codec_options_apply_to_encrypted_values(client, peer, encryption, key):
    options = CodecOptions(uuid_representation=UuidRepresentation.STANDARD, tz_aware=True)
    with ClientEncryption(KMS_PROVIDERS, VAULT, client, options) as configured:
        value = uuid.uuid4()
        secret = configured.encrypt(value, RANDOMIZED, key)
        assert configured.decrypt(secret) == value
        assert is_equal_bson(peer.encryption.decrypt(secret), bson.Binary.from_uuid(value))
