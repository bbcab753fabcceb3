"""Tests that no output of the driver contains a secret of the application.

:mod:`tests.hostile.canary` searches the output.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from fnmatch import fnmatch
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote_plus

import bson
import bson.json_util
import gevent
import pytest
from bson.codec_options import CodecOptions

import gmongo
import gmongo.uri_parser
from gmongo import MongoClient
from gmongo.auth_oidc import OIDCCallback, OIDCCallbackResult
from gmongo.testing import Deployment
from tests.auth.accounts import AuthServer
from tests.auth.endpoints import Endpoint
from tests.support.cases import rows
from tests.support.server import ScriptedServer, cut_reply, send_malformed_reply, send_no_reply

pytest.importorskip("opentelemetry.sdk")
pytest.importorskip("rich")
pytest.importorskip("pymongocrypt")

from gmongo._encryption.connect_callback import HTTPProxyKMSConnect
from gmongo.encryption import Algorithm, ClientEncryption
from gmongo.encryption_options import AutoEncryptionOpts
from tests.encryption.proxy import Proxy
from tests.hostile.canary import Canary
from tests.support.garbage import freeze_living_objects
from tests.support.kms import KmsServer
from tests.support.mongocryptd import Mongocryptd
from tests.support.proxies import Socks5Proxy
from tests.support.tls import server_context

SECRETS = {
    name: f"canary-of-a-{name.replace(' ', '-')}-0123456789"
    for name in (
        "password",
        "new password",
        "access token",
        "refresh token",
        "session token",
        "secret access key",
        "client secret",
        "proxy password",
        "key file password",
        "plaintext",
        "key material",
    )
}
MASTER_KEY = ("canary-of-a-master-key-" * 5)[:96].encode()
WATCHED_SECRETS = {**SECRETS, "master key": "canary-of-a-master-key-canary-of-a-master"}
VAULT = "vault.keys"
DETERMINISTIC = Algorithm.AEAD_AES_256_CBC_HMAC_SHA_512_Deterministic

ALLOWED: tuple[tuple[str, str, str], ...] = (
    # Permitted findings: the patterns of the output channel and of the secret name, and the reason.
    ("the local * of collection.py:*", "plaintext", "the local is an argument of the application"),
    ("the * of InvalidDocument", "plaintext", "the error of the package bson has the document that cannot be encoded"),
)


@pytest.fixture(scope="module", autouse=True)
def _unfreeze_objects_of_tests() -> Iterator[None]:
    """After the tests, collect the unreferenced objects that :class:`Canary` has frozen."""
    yield
    freeze_living_objects()


@pytest.fixture
def canary() -> Iterator[Canary]:
    with Canary(WATCHED_SECRETS) as searching_canary:
        yield searching_canary
    leaks = [each for each in searching_canary.findings if not is_allowed(each)]
    assert not leaks, "\n".join(f"{each.secret_name} in {each.channel}: {each.text!r}" for each in sorted(leaks)[:25])


def is_allowed(finding: Any) -> bool:
    return any(
        fnmatch(finding.channel, channel_pattern) and fnmatch(finding.secret_name, name_pattern)
        for channel_pattern, name_pattern, _ in ALLOWED
    )


def collect_error(canary: Canary, use: Callable[[], object]) -> BaseException | None:
    """Call `use`. Search an exception of `use` for secrets. Return the exception, or None."""
    try:
        use()
    except (Exception, gevent.Timeout, gevent.GreenletExit) as error:
        canary.search_error(error)
        return error
    return None


class TokenCallback(OIDCCallback):
    def fetch(self, context: Any) -> OIDCCallbackResult:
        return OIDCCallbackResult(SECRETS["access token"], 60, SECRETS["refresh token"])


CREDENTIALS: dict[str, dict[str, Any]] = {
    "DEFAULT": {"username": "ann", "password": SECRETS["password"]},
    "SCRAM-SHA-1": {"username": "ann", "password": SECRETS["password"]},
    "SCRAM-SHA-256": {"username": "ann", "password": SECRETS["password"]},
    "PLAIN": {"username": "ann", "password": SECRETS["password"]},
    "MONGODB-OIDC": {"authMechanismProperties": {"OIDC_CALLBACK": TokenCallback()}},
    "MONGODB-OIDC human": {"authMechanismProperties": {"OIDC_HUMAN_CALLBACK": TokenCallback()}},
    "MONGODB-AWS": {
        "username": "id",
        "password": SECRETS["secret access key"],
        "authMechanismProperties": {"AWS_SESSION_TOKEN": SECRETS["session token"]},
    },
}
NONCE = bytes(range(32))


def message_with_command(command: Any) -> str:
    """Return an error message that contains the whole command."""
    return f"cannot do {bson.json_util.dumps(command)}, {command!r}"


def echo(command: Any) -> dict[str, Any]:
    return {
        "ok": 0,
        "code": 18,
        "codeName": "AuthenticationFailed",
        "errmsg": message_with_command(command),
        "given": command,
    }


def aws_reply(command: Any) -> dict[str, Any]:
    nonce = bson.decode(command["payload"])["r"] + NONCE
    payload = bson.encode({"s": nonce, "h": "sts.amazonaws.com"})
    return {"ok": 1, "conversationId": 1, "done": False, "payload": payload}


def first_reply(mechanism: str) -> Any:
    """Return the first reply of the server in an authentication with `mechanism`. For MONGODB-AWS and
    the OIDC login of a human, the client then sends the secret in a second step.
    """
    if mechanism == "MONGODB-AWS":
        return aws_reply
    if mechanism == "MONGODB-OIDC human":
        provider = bson.encode({"issuer": "https://issuer", "clientId": "a"})
        return {"ok": 1, "conversationId": 1, "done": False, "payload": provider}
    return echo


def reject(server: ScriptedServer, mechanism: str) -> None:
    server.replies["saslStart"] = first_reply(mechanism)
    server.replies["saslContinue"] = {"ok": 0, "code": 18, "errmsg": "Authentication failed."}


def echo_sasl(server: ScriptedServer, mechanism: str) -> None:
    server.replies["saslStart"] = first_reply(mechanism)
    server.replies["saslContinue"] = echo


def echo_in_hello(server: ScriptedServer, mechanism: str) -> None:
    reject(server, mechanism)
    server.hello_edit = lambda command, reply: echo(command) if "speculativeAuthenticate" in command else reply


def reply_malformed(server: ScriptedServer, mechanism: str) -> None:
    server.replies["saslStart"] = lambda command: {"ok": 1, "payload": 5, "given": command}
    server.replies["saslContinue"] = lambda command: {"ok": 1, "done": "x", "payload": [], "errorLabels": command}


def continue_forever(server: ScriptedServer, mechanism: str) -> None:
    server.replies["saslStart"] = server.replies["saslContinue"] = lambda command: {
        "ok": 1, "conversationId": 1, "done": False, "payload": command["payload"],
    }  # fmt: skip


def with_fault(fault: Any) -> Callable[[ScriptedServer, str], None]:
    def cause_fault(server: ScriptedServer, mechanism: str) -> None:
        server.replies["saslStart"] = first_reply(mechanism)
        server.fail("saslContinue", *[fault] * 5)
        if first_reply(mechanism) is echo:
            server.fail("saslStart", *[fault] * 5)

    return cause_fault


def accept_authentication(server: ScriptedServer, mechanism: str) -> None:
    """Make the server accept the authentication, and require a reauthentication for each `find`. For
    SCRAM, the server is an `AuthServer`, which computes its replies.
    """
    server.replies["saslStart"] = first_reply(mechanism)
    final_reply = {"ok": 1, "conversationId": 1, "done": True, "payload": b""}
    if first_reply(mechanism) is echo:
        server.replies["saslStart"] = final_reply
    server.replies["saslContinue"] = final_reply
    server.replies["find"] = {"ok": 0, "code": 391, "errmsg": "ReauthenticationRequired"}


BEHAVIOURS: dict[str, Callable[[ScriptedServer, str], None]] = {
    "rejection": reject,
    "echo": echo_sasl,
    "echo in hello": echo_in_hello,
    "malformed reply": reply_malformed,
    "endless conversation": continue_forever,
    "cut": with_fault(cut_reply(10)),
    "silence": with_fault(send_no_reply),
    "garbage": with_fault(send_malformed_reply),
    "success and reauthentication": accept_authentication,
}


@pytest.mark.one_in(16)
@pytest.mark.parametrize("behaviour", BEHAVIOURS.values(), ids=BEHAVIOURS.keys())
@pytest.mark.parametrize("mechanism", CREDENTIALS)
def test_authentication_discloses_no_secret(
    canary: Canary, mechanism: str, behaviour: Callable[[ScriptedServer, str], None]
) -> None:
    needs_auth_server = behaviour is accept_authentication and mechanism in ("DEFAULT", "SCRAM-SHA-1", "SCRAM-SHA-256")
    with AuthServer({"ann": SECRETS["password"]}) if needs_auth_server else ScriptedServer() as server:
        behaviour(server, mechanism)
        client: MongoClient[Any] = MongoClient(
            server.name,
            authMechanism=mechanism.split(" ", maxsplit=1)[0],
            serverSelectionTimeoutMS=400,
            connectTimeoutMS=200,
            slow_operation_ms=0,
            **CREDENTIALS[mechanism],
        )
        with client:
            # Without a timeout, the driver waits minutes for the OIDC login of a human.
            with gmongo.timeout(0.6):
                for _ in range(2):  # With OIDC, the second operation can use the cached token.
                    collect_error(canary, client.d.c.find_one)
                collect_error(canary, lambda: client.d.c.insert_one({}))
            collect_interruption_errors(canary, lambda: client.d.c.find_one())
    assert bool(server.commands("find")) == (behaviour is accept_authentication)
    assert "the log gmongo.connection" in canary.used_channels


def collect_interruption_errors(canary: Canary, use: Callable[[], object]) -> None:
    """Interrupt `use` by a gevent timeout, a driver time limit and a kill, and search the errors."""

    def use_with_timeout() -> None:
        with gevent.Timeout(0.02):
            use()

    def use_with_limit() -> None:
        with gmongo.timeout(0.02):
            use()

    for each in (use_with_timeout, use_with_limit):
        collect_error(canary, each)
    greenlet = gevent.spawn(use)
    gevent.sleep(0.01)
    greenlet.kill()
    if greenlet.exception is not None:
        canary.search_error(greenlet.exception)


@pytest.mark.parametrize("environment", ["azure", "gcp", "aws", "aws web identity"])
@pytest.mark.parametrize("status", [200, 500])
def test_use_of_credential_service_discloses_no_secret(
    canary: Canary, environment: str, status: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def answer(method: str, path: str, headers: Any, body: str) -> tuple[int, str]:
        quoted_values = {"headers": headers, "message": f"invalid: {unquote_plus(body)}"}
        fields = {"access_token": SECRETS["access token"], "AccessKeyId": "id", "expires_in": "x", **quoted_values}
        keys = {"SecretAccessKey": SECRETS["secret access key"], "Token": SECRETS["session token"]}
        return status, bson.json_util.dumps({**fields, **keys, "Expiration": SECRETS["session token"]})

    # With MONGODB-AWS, the driver fetches the credentials only after a valid first reply of the
    # server.
    first_sasl_reply = aws_reply if environment.startswith("aws") else echo
    with Endpoint(answer) as endpoint, ScriptedServer({"saslStart": first_sasl_reply, "saslContinue": echo}) as server:
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{endpoint.url}/credentials")
        monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", SECRETS["refresh token"])
        if environment == "aws web identity":
            (tmp_path / "token").write_text(SECRETS["refresh token"])
            monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(tmp_path / "token"))
            monkeypatch.setenv("AWS_ROLE_ARN", "arn:aws:iam::1:role/r")
            monkeypatch.setenv("AWS_ENDPOINT_URL_STS", endpoint.url)
        monkeypatch.setenv("AZURE_POD_IDENTITY_AUTHORITY_HOST", endpoint.url)
        monkeypatch.setenv("GCE_METADATA_HOST", endpoint.host)
        options: dict[str, Any] = {"authMechanism": "MONGODB-AWS"}
        if not environment.startswith("aws"):
            properties = {"ENVIRONMENT": environment, "TOKEN_RESOURCE": "https://db"}
            options = {"authMechanism": "MONGODB-OIDC", "authMechanismProperties": properties}
        with MongoClient(server.name, serverSelectionTimeoutMS=300, connectTimeoutMS=300, **options) as client:
            for _ in range(2):
                assert collect_error(canary, client.d.c.find_one) is not None
        assert endpoint.requests


INVALID_OPTIONS: list[dict[str, Any]] = [
    {"username": "ann", "password": SECRETS["password"], "authMechanism": "EVIL"},
    {"username": "ann", "password": SECRETS["password"], "passwrod": SECRETS["password"]},
    {"username": "ann", "password": [SECRETS["password"]]},
    {"proxyPassword": SECRETS["proxy password"]},
    {"tlsCertificateKeyFilePassword": SECRETS["key file password"], "tls": False},
    {"authMechanismProperties": {"AWS_SESSION_TOKEN": SECRETS["session token"]}},
    {"authMechanismProperties": SECRETS["session token"]},
    {"username": "ann", "password": SECRETS["password"], "maxPoolSize": -1},
    {"username": "ann", "password": SECRETS["password"], "authMechanism": "PLAIN"},
    {"username": "ann", "password": SECRETS["password"], "event_listeners": [object()]},
    {"username": "ann", "password": SECRETS["password"], "port": "x"},
]


def test_errors_about_options_disclose_no_secret(canary: Canary, files: SimpleNamespace) -> None:
    for row in rows(__file__, "uris"):
        uri = row["uri"].format(**SECRETS)
        collect_error(canary, lambda uri=uri: MongoClient(uri, connect=False))  # type: ignore[misc]
        collect_error(canary, lambda uri=uri: gmongo.uri_parser.parse_uri(uri))  # type: ignore[misc]
    for options in INVALID_OPTIONS:
        collect_error(canary, lambda options=options: MongoClient("h", connect=False, **options))  # type: ignore[misc]
    files_of_tls = {"tlsCertificateKeyFile": files.client, "tlsCAFile": files.ca}
    secret = {"tlsCertificateKeyFilePassword": SECRETS["key file password"]}
    for options in ({**files_of_tls, **secret}, {**files_of_tls, **secret, "tlsCAFile": "/nothing"}):
        collect_error(canary, lambda options=options: MongoClient("h", connect=False, **options))  # type: ignore[misc]


@pytest.mark.parametrize("account", [("u", "another"), ("u", SECRETS["proxy password"]), None])
def test_proxy_failure_discloses_no_secret(canary: Canary, account: Any) -> None:
    with Socks5Proxy(account) as proxy:
        uri = f"mongodb://127.0.0.1:1/?proxyHost=127.0.0.1&proxyPort={proxy.port}&proxyUsername=u"
        secret = {"proxyPassword": SECRETS["proxy password"]}
        with MongoClient(uri, serverSelectionTimeoutMS=300, connectTimeoutMS=200, **secret) as client:
            assert collect_error(canary, client.d.c.find_one) is not None


SECRET_COMMANDS: dict[str, Callable[[Any], object]] = {
    "createUser": lambda database: database.command("createUser", "bea", pwd=SECRETS["new password"], roles=[]),
    "updateUser": lambda database: database.command({"updateUser": "bea", "pwd": SECRETS["new password"]}),
    "saslStart": lambda database: database.command(
        "saslStart", 1, mechanism="PLAIN", payload=f"\0ann\0{SECRETS['password']}".encode()
    ),
    "saslContinue": lambda database: database.command(
        {"saslContinue": 1, "conversationId": 1, "payload": SECRETS["access token"].encode()}
    ),
    "authenticate": lambda database: database.command("authenticate", 1, key=SECRETS["password"]),
    "copydb": lambda database: database.command("copydb", 1, key=SECRETS["password"]),
}
FAULTS: dict[str, Any] = {
    "success": {"ok": 1, "payload": SECRETS["access token"].encode(), "key": SECRETS["password"]},
    "rejection": {"ok": 0, "code": 18, "errmsg": "no"},
    "echo": echo,
    "echo as interruption": lambda command: {**echo(command), "code": 11600},
    "echo in write concern error": lambda command: {"ok": 1, "writeConcernError": {**echo(command), "code": 64}},
    "cut": cut_reply(20),
    "silence": send_no_reply,
    "garbage": send_malformed_reply,
}


@pytest.mark.one_in(4)
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
@pytest.mark.parametrize("name", SECRET_COMMANDS)
def test_secret_commands_disclose_no_secret(canary: Canary, name: str, fault: Any) -> None:
    with ScriptedServer() as server:
        if callable(fault) and fault not in (FAULTS["echo"],) and "echo" not in fault_name(fault):
            server.fail(name, *[fault] * 5)
        else:
            server.replies[name] = fault
        with MongoClient(server.name, socketTimeoutMS=100, serverSelectionTimeoutMS=300, slow_operation_ms=0) as client:
            collect_error(canary, lambda: SECRET_COMMANDS[name](client.admin))
            if fault is send_no_reply:
                collect_interruption_errors(canary, lambda: SECRET_COMMANDS[name](client.admin))


def fault_name(fault: Any) -> str:
    return next(name for name, each in FAULTS.items() if each is fault)


def test_authenticated_deployment_discloses_no_secret(canary: Canary) -> None:
    with Deployment.replica_set(members=1, users={"ann": SECRETS["password"]}, log=False) as deployment:
        host = deployment.members[0].address
        for password in (SECRETS["password"], SECRETS["new password"]):
            client: MongoClient[Any] = MongoClient(
                f"mongodb://ann:{password}@{host}/?replicaSet=rs0", serverSelectionTimeoutMS=500
            )
            with client:
                collect_error(canary, lambda client=client: client.d.c.insert_one({}))  # type: ignore[misc]
                collect_error(canary, lambda client=client: client.d.c.find_one())  # type: ignore[misc]
                for use in SECRET_COMMANDS.values():
                    collect_error(canary, lambda use=use, client=client: use(client.admin))  # type: ignore[misc]
                canary.search_objects()


@pytest.fixture(scope="module")
def deployment() -> Iterator[Deployment]:
    with Deployment.replica_set(members=1) as started:
        yield started


LOCAL_KMS = {"local": {"key": MASTER_KEY}}
CODEC_OPTIONS: CodecOptions[Any] = CodecOptions()


def test_explicit_encryption_discloses_no_secret(canary: Canary, deployment: Deployment) -> None:
    plaintext = SECRETS["plaintext"]
    with (
        MongoClient(deployment.uri, slow_operation_ms=0) as client,
        ClientEncryption(LOCAL_KMS, VAULT, client, CODEC_OPTIONS) as encryption,
    ):
        material = (SECRETS["key material"] * 5)[:96].encode()
        key = encryption.create_data_key("local", key_alt_names=["a"], key_material=material)
        value = encryption.encrypt(plaintext, DETERMINISTIC, key)
        assert encryption.decrypt(value) == plaintext
        failing_calls: dict[str, Callable[[], object]] = {
            "an algorithm": lambda: encryption.encrypt(plaintext, "Nonsense", key),
            "a key": lambda: encryption.encrypt(plaintext, DETERMINISTIC, bson.Binary(bytes(16), 4)),
            "a name": lambda: encryption.encrypt(plaintext, DETERMINISTIC, key_alt_name="nobody"),
            "a type": lambda: encryption.encrypt({"a": plaintext}, DETERMINISTIC, key),
            "a query": lambda: encryption.encrypt(plaintext, "Indexed", key, query_type="nonsense"),
            "an expression": lambda: encryption.encrypt_expression({"a": plaintext}, "Range", key),
            "no BSON": lambda: encryption.encrypt({"a": plaintext, "b": object()}, DETERMINISTIC, key),
            "a ciphertext": lambda: encryption.decrypt(bson.Binary(plaintext.encode(), 6)),
            "key material": lambda: encryption.create_data_key("local", key_material=material[:50]),
            "a provider": lambda: encryption.create_data_key("nothing", key_material=material),
        }
        for use in failing_calls.values():
            assert collect_error(canary, use) is not None
        deployment.members[0].kill()
        with gmongo.timeout(0.3):
            collect_error(canary, lambda: encryption.create_data_key("local", key_material=material))
            collect_error(canary, lambda: encryption.encrypt(plaintext, DETERMINISTIC, key_alt_name="a"))
        deployment.members[0].restart()
        client.admin.command("ping")


INVALID_PROVIDERS: dict[str, Any] = {
    "too short": {"local": {"key": MASTER_KEY[:90]}},
    "not bytes": {"local": {"key": [MASTER_KEY]}},
    "unknown": {"local": {"key": MASTER_KEY}, "clouds": {"secretAccessKey": SECRETS["secret access key"]}},
    "incomplete": {"aws": {"secretAccessKey": SECRETS["secret access key"]}},
    "no mapping": [{"local": {"key": MASTER_KEY}}],
    "a private key": {"gcp": {"email": "a", "privateKey": SECRETS["client secret"]}},
    "too much": {"azure": {"tenantId": "a", "clientId": "a", "clientSecret": SECRETS["client secret"], "more": 1}},
}
KMS_TLS = {"aws": {"tlsCertificateKeyFile": "/nothing", "tlsCertificateKeyFilePassword": SECRETS["key file password"]}}


def test_errors_about_encryption_options_disclose_no_secret(canary: Canary, deployment: Deployment) -> None:
    with MongoClient(deployment.uri) as client:
        for providers in INVALID_PROVIDERS.values():
            collect_error(canary, lambda providers=providers: ClientEncryption(providers, VAULT, client, CODEC_OPTIONS))  # type: ignore[misc]
            collect_error(canary, lambda providers=providers: encrypting_client(deployment, {}, providers))  # type: ignore[misc]
        for vault in ("nothing", 5):
            collect_error(canary, lambda vault=vault: ClientEncryption(LOCAL_KMS, vault, client, CODEC_OPTIONS))  # type: ignore[misc]
            collect_error(canary, lambda vault=vault: AutoEncryptionOpts(LOCAL_KMS, vault))  # type: ignore[misc]
        collect_error(canary, lambda: ClientEncryption(LOCAL_KMS, VAULT, client, CODEC_OPTIONS, KMS_TLS))
        collect_error(canary, lambda: AutoEncryptionOpts(LOCAL_KMS, VAULT, kms_tls_options=KMS_TLS))
        for url in ("ftp://u:{}@h", "http://u:{}@", "http://u:{}@h/path", "http://u:{}@h:x", "u:{}@h"):
            secret = url.format(SECRETS["proxy password"])
            collect_error(canary, lambda secret=secret: HTTPProxyKMSConnect(secret))  # type: ignore[misc]
        header = {"Proxy-Authorization": SECRETS["proxy password"] + "\n"}
        collect_error(canary, lambda: HTTPProxyKMSConnect("http://h", headers=header))


def encrypting_client(deployment: Any, schema: Any, providers: Any = LOCAL_KMS, **options: Any) -> MongoClient[Any]:
    settings = AutoEncryptionOpts(providers, VAULT, schema_map=schema, **{"mongocryptd_bypass_spawn": True, **options})
    return MongoClient(deployment.uri, auto_encryption_opts=settings, slow_operation_ms=0, serverSelectionTimeoutMS=500)


@pytest.fixture
def schema(deployment: Deployment) -> dict[str, Any]:
    with MongoClient(deployment.uri) as client, ClientEncryption(LOCAL_KMS, VAULT, client, CODEC_OPTIONS) as encryption:
        client.shop.people.drop()
        key = encryption.create_data_key("local")
    rule = {"keyId": [key], "bsonType": "string", "algorithm": DETERMINISTIC.value}
    return {"shop.people": {"bsonType": "object", "properties": {"ssn": {"encrypt": rule}}}}


def operate_on_encrypted_field(canary: Canary, people: Any) -> None:
    """Run operations with an encrypted field. Some operations fail."""
    plain = SECRETS["plaintext"]
    collect_error(canary, lambda: people.insert_one({"ssn": plain}))
    collect_error(canary, lambda: people.insert_many([{"ssn": plain}, {"ssn": plain}]))
    collect_error(canary, lambda: people.find_one({"ssn": plain}))
    collect_error(canary, lambda: list(people.find({"ssn": plain})))
    collect_error(canary, lambda: people.find_one({"ssn": {"$gt": plain}}))
    collect_error(canary, lambda: people.update_one({"ssn": plain}, {"$set": {"ssn": plain}}))
    collect_error(canary, lambda: people.update_one({}, {"$push": {"ssn": plain}}))
    collect_error(
        canary, lambda: people.bulk_write([gmongo.InsertOne({"ssn": plain}), gmongo.DeleteOne({"ssn": plain})])
    )
    collect_error(canary, lambda: list(people.aggregate([{"$match": {"ssn": plain}}])))
    collect_error(canary, lambda: people.find_one_and_update({"ssn": plain}, {"$set": {"ssn": plain}}))
    collect_error(canary, lambda: people.distinct("ssn", {"ssn": plain}))
    collect_error(canary, lambda: people.count_documents({"ssn": plain}))


MONGOCRYPTD_FAULTS: dict[str, Callable[[Mongocryptd], object]] = {
    "success": lambda server: None,
    "cut": lambda server: [server.fail(name, *[cut_reply(20)] * 9) for name in server.replies],
    "garbage": lambda server: [server.fail(name, *[send_malformed_reply] * 9) for name in server.replies],
    "malformed reply": lambda server: server.replies.update(
        dict.fromkeys(
            server.replies, lambda command: {"ok": 1, "result": [command], "schemaRequiresEncryption": command}
        )
    ),
    "stopped": lambda server: server.stop(),
}


@pytest.mark.one_in(6)
@pytest.mark.parametrize("cause_fault", MONGOCRYPTD_FAULTS.values(), ids=MONGOCRYPTD_FAULTS.keys())
def test_automatic_encryption_discloses_no_secret(
    canary: Canary, deployment: Deployment, schema: Any, cause_fault: Callable[[Mongocryptd], object]
) -> None:
    with Mongocryptd() as mongocryptd, ExitStack() as stack:
        cause_fault(mongocryptd)
        uri = f"{mongocryptd.uri}&serverSelectionTimeoutMS=50"
        client = stack.enter_context(encrypting_client(deployment, schema, mongocryptd_uri=uri))
        limit = gmongo.timeout(0.5) if cause_fault is MONGOCRYPTD_FAULTS["stopped"] else ExitStack()
        with limit:
            operate_on_encrypted_field(canary, client.shop.people)
        canary.search_objects()


AWS_MASTER_KEY = {"region": "us-east-1", "key": "arn:aws:kms:us-east-1:1:key/1"}
CREDENTIALS_AND_KEYS: dict[str, Any] = {
    "aws": (
        {
            "accessKeyId": "id",
            "secretAccessKey": SECRETS["secret access key"],
            "sessionToken": SECRETS["session token"],
        },
        AWS_MASTER_KEY,
    ),
    "azure": (
        {"tenantId": "tenant", "clientId": "client", "clientSecret": SECRETS["client secret"]},
        {"keyVaultEndpoint": "a.vault.azure.net", "keyName": "k"},
    ),
    "gcp": (
        {"accessToken": SECRETS["access token"]},
        {"projectId": "p", "location": "l", "keyRing": "r", "keyName": "k"},
    ),
}  # fmt: skip


@pytest.mark.one_in(6)
@pytest.mark.parametrize("failure", ["success", "rejection", "closed", "slow", "wrong certificate", "proxy"])
@pytest.mark.parametrize("provider", CREDENTIALS_AND_KEYS)
def test_key_management_errors_disclose_no_secret(
    canary: Canary,
    deployment: Deployment,
    files: SimpleNamespace,
    provider: str,
    failure: str,
) -> None:
    credentials, master_key = CREDENTIALS_AND_KEYS[provider]
    material = (SECRETS["key material"] * 5)[:96].encode()
    with (
        KmsServer(server_context(files.key_services)) as kms,
        Proxy(kms.port) as proxy,
        MongoClient(deployment.uri) as client,
    ):
        kms.status = 500 if failure == "rejection" else 200
        kms.failure_count = 50 if failure == "closed" else 0
        kms.delay = (lambda: gevent.sleep(0.2)) if failure == "slow" else (lambda: None)
        connect: Any = kms.connect
        if failure == "proxy":
            proxy.status = "407 Proxy Authentication Required"
            connect = HTTPProxyKMSConnect(f"http://u:{SECRETS['proxy password']}@127.0.0.1:{proxy.port}")
        tls = {provider: {} if failure == "wrong certificate" else {"tlsCAFile": str(files.ca)}}
        with (
            ClientEncryption(
                {provider: credentials}, VAULT, client, CODEC_OPTIONS, tls, kms_connect_callback=connect
            ) as encryption,
            gmongo.timeout(0.1 if failure == "slow" else 5),
        ):
            collect_error(canary, lambda: encryption.create_data_key(provider, master_key, key_material=material))
            if failure == "slow":
                collect_interruption_errors(
                    canary, lambda: encryption.create_data_key(provider, master_key, key_material=material)
                )
        assert bool(kms.requests) == (failure not in ("wrong certificate", "proxy"))
        assert bool(proxy.heads) == (failure == "proxy")
