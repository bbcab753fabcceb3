"""Throw an exception into a greenlet that encrypts or decrypts, once at each switch of the
greenlet.
"""

from __future__ import annotations

from typing import Any

import pytest
from bson.codec_options import CodecOptions
from gevent import get_hub

from gmongo import MongoClient, _background
from gmongo.encryption import Algorithm, ClientEncryption
from gmongo.encryption_options import AutoEncryptionOpts
from gmongo.engines import session_reaper
from gmongo.sdam import monitor
from tests.encryption.conftest import KMS_PROVIDERS, VAULT
from tests.gevent.switching.harness import Scenario, ScenarioRun, explore
from tests.gevent.switching.interruptions import INTERRUPTION_KINDS, KILL, LATE_TIMEOUT, track_timeouts

RANDOMIZED = Algorithm.AEAD_AES_256_CBC_HMAC_SHA_512_Random


@pytest.fixture(autouse=True)
def short_intervals(monkeypatch, virtual_time):
    track_timeouts(monkeypatch)
    monkeypatch.setattr(monitor, "MIN_HEARTBEAT_FREQUENCY", 0.002)
    monkeypatch.setattr(_background, "_PAUSE_AFTER_EXCEPTION", 0.002)
    monkeypatch.setattr(session_reaper, "_DELAYS", (0.002, 0.02, 0.2))
    # Let the hub start its threads before the test counts resources.
    get_hub().threadpool.apply(int)


class EncryptedScenario(Scenario):
    """Scenario in which a collection contains encrypted values, and the client has not yet read the
    key.
    """

    options = {"auto_encryption_opts": AutoEncryptionOpts(KMS_PROVIDERS, VAULT, bypass_query_analysis=True)}
    value: Any = "secret"
    min_switches = 3

    def prepare(self, run_state: ScenarioRun) -> None:
        with MongoClient(run_state.deployment.uri) as plain_client:
            encryption = ClientEncryption(KMS_PROVIDERS, VAULT, plain_client, CodecOptions())
            plain_client.keyvault.datakeys.delete_many({})
            key = encryption.create_data_key("local", key_alt_names=["name"])
            plain_client.test.secrets.delete_many({})
            secret = encryption.encrypt(self.value, RANDOMIZED, key)
            plain_client.test.secrets.insert_many({"_id": number, "secret": secret} for number in range(4))


class EncryptedRead(EncryptedScenario):
    name = "read with key query"

    def run_operation(self, run_state: ScenarioRun) -> Any:
        assert run_state.db.secrets.find_one({"_id": 1})["secret"] == self.value


class LongEncryptedRead(EncryptedRead):
    name = "read with decryption in a thread"
    value = "x" * 200_000


class EncryptedIteration(EncryptedScenario):
    name = "cursor with decryption"

    def run_operation(self, run_state: ScenarioRun) -> Any:
        assert [each["secret"] for each in run_state.db.secrets.find(batch_size=2)] == [self.value] * 4


class EncryptedWrite(EncryptedScenario):
    name = "write with encryption"

    def run_operation(self, run_state: ScenarioRun) -> Any:
        run_state.db.secrets.insert_one({"text": "x" * 20_000})


class ExplicitEncryption(EncryptedScenario):
    name = "explicit encryption"
    options = {}

    def run_operation(self, run_state: ScenarioRun) -> Any:
        with ClientEncryption(KMS_PROVIDERS, VAULT, run_state.client, CodecOptions()) as encryption:
            secret = encryption.encrypt("x" * 100_000, RANDOMIZED, key_alt_name="name")
            assert len(encryption.decrypt(secret)) == 100_000


SCENARIOS = [EncryptedRead(), LongEncryptedRead(), EncryptedIteration(), EncryptedWrite(), ExplicitEncryption()]


@pytest.mark.one_in(16)
@pytest.mark.parametrize(
    "interruption_kind", INTERRUPTION_KINDS, ids=lambda kind: f"{kind.name}-{kind.moment}".replace(" ", "-")
)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name.replace(" ", "-"))
def test_interruption_at_each_switch_of_encryption_leaks_no_resource(scenario, interruption_kind):
    switch_count, thrown_count = explore(scenario, interruption_kind)
    assert thrown_count == switch_count or not interruption_kind.is_from_application


@pytest.mark.long
@pytest.mark.parametrize("interruption_kind", [KILL, LATE_TIMEOUT], ids=lambda kind: kind.name)
def test_interruption_of_encryption_leaks_no_resource_while_listeners_switch_greenlets(interruption_kind):
    _switch_count, thrown_count = explore(SCENARIOS[0], interruption_kind, listeners_switch=True)
    assert thrown_count
