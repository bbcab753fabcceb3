"""Tests that no log record, warning, repr, pickle or exception of the driver contains a password."""

from __future__ import annotations

import io
import logging
import pickle
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch
from urllib.parse import quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gmongo import MongoClient
from gmongo.options import srv

SECRET = "pa/ss:w@rd-7!"
ENCODED_SECRET = quote_plus(SECRET)


@contextmanager
def captured_logs() -> Iterator[io.StringIO]:
    """Yield a stream that receives log records of gmongo and, after the block, all warnings."""
    stream, logger = io.StringIO(), logging.getLogger("gmongo")
    handler, level = logging.StreamHandler(stream), logger.level
    handler.setFormatter(logging.Formatter("%(message)s %(structured)s", defaults={"structured": ""}))
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield stream
        stream.write(" ".join(str(each.message) for each in caught))
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


def texts_about(uri: str) -> str:
    """Create a client, and return the texts of its exceptions, warnings, log records and reprs."""
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


MARKER = "Cana7y"
# URIs with a password. Most of the URIs are malformed: for example, a character is wrongly escaped.
_MALFORMED_URIS = st.builds(
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
_URIS_WITHOUT_HOST = st.builds(
    "{}{}{}".format,
    st.sampled_from(["mongodb://ann:", "mongodb+srv://ann:"]),
    st.sampled_from(
        [MARKER, f"%40{MARKER}%2F", f"12?{MARKER}=1", f"{MARKER}?w=1", f"12?maxPoolSize={MARKER}", f"1&{MARKER}"]
    ),
    st.sampled_from(["", "/", "/admin", ",h", "/?tls=true", "/?nonsense=1", "/d/e"]),
)
_URIS_WITH_SECRETS = st.builds(
    "mongodb://h/?{}={}&{}={}".format,
    st.sampled_from(["proxyPassword", "tlsCertificateKeyFilePassword", "authMechanismProperties"]),
    st.sampled_from([MARKER, f"AWS_SESSION_TOKEN:1,{MARKER}:2", "a"]),
    st.sampled_from([MARKER, "maxPoolSize", "maxIdleTimeMS", "compressors", "nonsense"]),
    st.sampled_from([MARKER, f"{MARKER}&{MARKER}=1", f"1&{MARKER}=1&{MARKER}=2"]),
)


@settings(max_examples=100, deadline=None)
@given(_MALFORMED_URIS | _URIS_WITHOUT_HOST | _URIS_WITH_SECRETS)
def test_malformed_uri_discloses_no_part_of_password(uri: str) -> None:
    with patch.object(srv, "lookup", lambda *_: srv.Answer([])):
        assert MARKER.lower() not in texts_about(uri).lower()


def test_pickle_of_client_or_credential_raises_type_error() -> None:
    client: MongoClient[Any] = MongoClient(f"mongodb://ann:{ENCODED_SECRET}@h", connect=False)
    for public_object in (client, client.options, client.options.credential):
        with pytest.raises(TypeError, match="pickle"):
            pickle.dumps(public_object)
