"""Tests that no log record, event, repr, pickle or exception of the driver contains a password."""

from __future__ import annotations

import io
import logging
import pickle
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from unittest.mock import patch
from urllib.parse import quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gmongo import MongoClient, monitoring
from gmongo.auth.authenticator import Authenticator
from gmongo.errors import ConfigurationError, OperationFailure, PyMongoError
from gmongo.options import srv
from gmongo.testing import Deployment
from tests.support.server import ScriptedServer

SECRET = "pa/ss:w@rd-7!"
ENCODED = quote_plus(SECRET)


class RecordingListener(
    monitoring.CommandListener,
    monitoring.ServerHeartbeatListener,
    monitoring.ServerListener,
    monitoring.TopologyListener,
    monitoring.ConnectionPoolListener,
):
    """Listener that records the repr and the public attributes of all events."""

    def __init__(self) -> None:
        self.text = io.StringIO()

    def _record(self, event: Any) -> None:
        self.text.write(f"{event!r} {event!s} {public_attributes(event)}\n")

    started = succeeded = failed = opened = closed = description_changed = _record
    pool_created = pool_ready = pool_cleared = pool_closed = _record
    connection_created = connection_ready = connection_closed = _record
    connection_check_out_started = connection_check_out_failed = _record
    connection_checked_out = connection_checked_in = _record


def public_attributes(value: Any) -> str:
    """Return the repr of each public attribute of an object, as one text."""
    names = [name for name in dir(value) if not name.startswith("_")]
    return " ".join(
        f"{name}={getattr(value, name, None)!r}" for name in names if not callable(getattr(value, name, None))
    )


@contextmanager
def captured_logs() -> Iterator[io.StringIO]:
    """Yield a stream to which all log records and all warnings are written."""
    text, root = io.StringIO(), logging.getLogger("gmongo")
    handler, level = logging.StreamHandler(text), root.level
    handler.setFormatter(logging.Formatter("%(message)s %(structured)s", defaults={"structured": ""}))
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield text
        text.write(" ".join(str(each.message) for each in caught))
    finally:
        root.removeHandler(handler)
        root.setLevel(level)


def assert_contains_no_secret(*texts: str) -> None:
    for text in texts:
        for secret in (SECRET, ENCODED):
            at = text.find(secret)
            assert at < 0, text[max(0, at - 200) : at + 50]


@pytest.mark.parametrize(
    ("mechanism", "password_is_correct"),
    [
        ("DEFAULT", True),
        ("DEFAULT", False),
        ("SCRAM-SHA-1", True),
        ("SCRAM-SHA-256", False),
        ("PLAIN", False),  # the simulated deployment does not support PLAIN
    ],
)
def test_authentication_and_operations_disclose_no_password(mechanism: str, password_is_correct: bool) -> None:
    listener = RecordingListener()
    users = {"ann": SECRET if password_is_correct else "another"}
    with captured_logs() as text, Deployment.replica_set(members=1, users=users, log=False) as deployment:
        host = deployment.members[0].address
        uri = f"mongodb://ann:{ENCODED}@{host}/?replicaSet=rs0&authMechanism={mechanism}"
        source = "&authSource=%24external" if mechanism == "PLAIN" else ""
        client: MongoClient[Any] = MongoClient(uri + source, event_listeners=[listener], serverSelectionTimeoutMS=500)
        with client:
            try:
                client.d.c.insert_one({})
            except PyMongoError as error:
                assert_contains_no_secret("".join(traceback.format_exception(error)), repr(error), str(vars(error)))
                assert_contains_no_secret(pickle.dumps(error).decode("latin1") if _can_be_pickled(error) else "")
            deployment.members[0].kill()
            deployment.members[0].restart()
            try:
                client.d.c.find_one()
            except PyMongoError as error:
                assert_contains_no_secret("".join(traceback.format_exception(error)))
            assert_contains_no_secret(
                repr(client), str(client), repr(client.options), str(client.pool_stats()), str(client.retry_stats())
            )
            assert_contains_no_secret(
                repr(client.topology_description), repr(client._topology), repr(client._topology.settings)
            )
            assert_contains_no_secret(repr(client._executor), repr(client.options.credential), repr(client.d.c))
            for pool in client._topology.pools():
                assert_contains_no_secret(repr(pool), *(repr(each) for each in pool.machine.available))
            assert client.options.credential is not None
            assert_contains_no_secret(repr(Authenticator(client.options.credential)), str(client.options.credential))
    assert_contains_no_secret(listener.text.getvalue(), text.getvalue())
    assert "ConnectionCreatedEvent" in listener.text.getvalue()
    if password_is_correct:
        assert "CommandStartedEvent" in listener.text.getvalue()
        assert "Command started" in text.getvalue()


def _can_be_pickled(error: BaseException) -> bool:
    try:
        pickle.dumps(error)
    except Exception:
        return False
    return True


BAD = [
    "mongodb://ann:{}@",
    "mongodb://ann:{}@h:99999",
    "mongodb://ann:{}@h:x",
    "mongodb://ann:{}@h/?authMechanism=EVIL",
    "mongodb://ann:{}@h/?tls=maybe",
    "mongodb://ann:{}@h/?authMechanism=MONGODB-X509&tls=true",
    "mongodb://ann:{}@h/?authMechanism=MONGODB-OIDC",
    "mongodb://ann:{}@h/d b",
    "mongodb://ann:{}@h/?nonsense",
    "mongodb://ann:{}@h/?tlsCertificateKeyFile=/nothing&tlsCertificateKeyFilePassword={}",
    "mongodb://h/?proxyHost=p&proxyUsername=u&proxyPassword={}&proxyPort=0",
    "mongodb://h/?proxyPassword={}",
    "mongodb://ann:{}@h,h2/?directConnection=true",
    "mongodb+srv://ann:{}@h:1/",
    "mongodb+srv://ann:{}@a.b.example.com,c/",
    "mongo://ann:{}@h",
    "mongodb://ann:{}@h/?maxPoolSize=-1",
    "mongodb://ann:{}@h/?authMechanismProperties=x:{}",
    "ann:{}@h",
]


def texts_about(uri: str) -> str:
    """Create a client.

    Return the texts of the exceptions, warnings, log records and reprs that result.
    """
    with captured_logs() as text:
        try:
            client: Any = MongoClient(uri, connect=False)
        except Exception as error:
            text.write("".join(texts_of(error)))
        else:
            text.write(f"{client!r} {client.options!r}")
    return text.getvalue()


def texts_of(error: BaseException | None) -> Iterator[str]:
    """Yield the text of an exception, of its notes, and of its causes."""
    if error is not None:
        yield f"{error} {error!r} {vars(error)} {getattr(error, '__notes__', '')}\n"
        yield from texts_of(error.__cause__)
        yield from texts_of(error.__context__)


@pytest.mark.parametrize("uri", BAD)
@pytest.mark.parametrize("encoded", [True, False], ids=["encoded", "raw"])
def test_errors_about_uri_disclose_no_password(uri: str, encoded: bool) -> None:
    assert_contains_no_secret(texts_about(uri.replace("{}", ENCODED if encoded else SECRET)))


MARKER = "Cana7y"
# URIs whose password has a character that is not escaped, or wrongly escaped.
_MALFORMED = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["mongodb://ann:", "mongodb+srv://ann:", "mongo://ann:", "ann:"]),
    st.lists(
        st.sampled_from(
            [MARKER, "12", "%", "%2F", "%zz", ":", "&", "=", "#", "+", " ", "[", "?", "/", "@", ";", "b=c"]
        ),
        min_size=1,
        max_size=5,
    )
    .map("".join)
    .flatmap(lambda text: st.sampled_from([text + MARKER, f"{MARKER}{text}", f"{text}{MARKER}=1"])),
    st.sampled_from(["@h", "@h:1", "@h,i:2", "@[::1]", "@h:x", "@h%21", "@", "@h.example.com"]),
    st.sampled_from(["", "/", "/d", "/?tls=true", "/?nonsense=1", "?w=1", "/d?maxPoolSize=x", "/?w=1;j=true&x=1"]),
)
_FORGOTTEN_HOSTS = st.builds(
    "{}{}{}".format,
    st.sampled_from(["mongodb://ann:", "mongodb+srv://ann:"]),
    st.sampled_from(
        [MARKER, f"%40{MARKER}%2F", f"12?{MARKER}=1", f"{MARKER}?w=1", f"12?maxPoolSize={MARKER}", f"1&{MARKER}"]
    ),
    st.sampled_from(["", "/", "/admin", ",h", "/?tls=true", "/?nonsense=1", "/d/e"]),
)
_SECRET_OPTIONS = st.builds(
    "mongodb://h/?{}={}&{}={}".format,
    st.sampled_from(["proxyPassword", "tlsCertificateKeyFilePassword", "authMechanismProperties"]),
    st.sampled_from([MARKER, f"AWS_SESSION_TOKEN:1,{MARKER}:2", "a"]),
    st.sampled_from([MARKER, "maxPoolSize", "maxIdleTimeMS", "compressors", "nonsense"]),
    st.sampled_from([MARKER, f"{MARKER}&{MARKER}=1", f"1&{MARKER}=1&{MARKER}=2"]),
)


@settings(max_examples=300, deadline=None)
@given(_MALFORMED | _FORGOTTEN_HOSTS | _SECRET_OPTIONS)
def test_malformed_uri_discloses_no_part_of_password(uri: str) -> None:
    with patch.object(srv, "lookup", lambda *_: srv.Answer([])):
        assert MARKER.lower() not in texts_about(uri).lower()


@pytest.mark.parametrize(
    "options",
    [
        {"password": 5, "username": "ann"},
        {"username": "ann", "password": SECRET, "authMechanism": "EVIL"},
        {"username": "ann", "password": SECRET, "passwrod": SECRET},
        {"proxyPassword": SECRET},
        {"tlsCertificateKeyFilePassword": SECRET, "tls": False},
        {"authMechanismProperties": {"AWS_SESSION_TOKEN": SECRET}},
        {"authMechanismProperties": SECRET},
        {"username": SECRET * 2, "password": ["x", SECRET]},
    ],
    ids=lambda options: " ".join(options),
)
def test_errors_about_keywords_disclose_no_password(options: dict[str, Any]) -> None:
    with captured_logs() as text:
        try:
            client: Any = MongoClient("h", connect=False, **options)
        except Exception as error:
            assert_contains_no_secret(str(error), repr(error))
        else:
            assert_contains_no_secret(repr(client), repr(client.options))
    assert_contains_no_secret(text.getvalue())


@pytest.mark.parametrize(
    "options",
    [
        {"username": SECRET, "password": "x"},
        {"username": "ann", "password": SECRET},
        {
            "username": "ann",
            "authMechanism": "MONGODB-AWS",
            "password": SECRET,
            "authMechanismProperties": {"AWS_SESSION_TOKEN": SECRET},
        },
        {"proxyHost": "p", "proxyUsername": SECRET, "proxyPassword": SECRET},
        {"tls": True, "tlsCertificateKeyFilePassword": SECRET},
    ],
    ids=lambda options: list(options)[-1],
)
def test_repr_of_client_discloses_no_password(options: dict[str, Any]) -> None:
    with suppress(ConfigurationError), MongoClient("h", connect=False, tz_aware=True, **options) as client:
        text = repr(client)
        assert_contains_no_secret(text)
        assert "proxyhost='p'" in text or "proxyHost" not in options
        for public_attributes in ("host=['h:27017']", "document_class=dict", "tz_aware=True", "connect=False"):
            assert f" {text}".count(public_attributes) == 1


def test_pickle_of_client_or_credential_raises_type_error() -> None:
    client: MongoClient[Any] = MongoClient(f"mongodb://ann:{ENCODED}@h", connect=False)
    for thing in (client, client.options, client.options.credential):
        with pytest.raises(TypeError, match="pickle"):
            pickle.dumps(thing)


SECRET_COMMANDS = ("authenticate", "saslStart", "saslContinue", "createUser", "updateUser", "copydb", "CREATEUSER")


@pytest.mark.parametrize("name", SECRET_COMMANDS)
@pytest.mark.parametrize("field", ["pwd", "payload", "key"])
def test_error_message_that_contains_secret_is_withheld(name: str, field: str) -> None:
    refusal = {"ok": 0, "code": 2, "errmsg": "what of hunter2?"}
    with ScriptedServer({name: refusal}) as server, MongoClient(server.name) as client:
        for value in ("hunter2", b"hunter2 and \xff more", ["hunter2"], {"x": "hunter2"}):
            with pytest.raises(OperationFailure) as caught:
                client.admin.command(name, "x", **{field: value})
            assert "hunter2" not in f"{caught.value!r} {caught.value.details}", value
            assert caught.value.details["errmsg"] == "message withheld, because it quotes secret data"
        # The value of the first field, whose name is the command name, is not secret.
        with pytest.raises(OperationFailure, match="what of hunter2"):
            client.admin.command(name, "hunter2", **{field: "else"})
