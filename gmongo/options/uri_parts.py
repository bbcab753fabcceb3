"""Split of a connection string into its parts. Error messages quote no part that may contain credentials."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import unquote, unquote_plus

from gmongo.errors import InvalidURI

SCHEME = "mongodb://"
SRV_SCHEME = "mongodb+srv://"

USERINFO_RULE = (
    "the username and password of a URI must be percent-encoded (RFC 3986): use urllib.parse.quote_plus for each"
)
_BAD_ESCAPE_PATTERN = re.compile(r"%(?![0-9A-Fa-f]{2})")
_FORM_ENCODED_PATTERN = re.compile(r"[A-Za-z0-9_.~%+-]*")
_FORBIDDEN_IN_DATABASE = frozenset('/\\ "$\0')


class UriParts(NamedTuple):
    """Percent-encoded parts of a connection string."""

    srv: bool
    userinfo: str | None
    hosts: str
    path: str
    options: str
    has_slash: bool  # True if a slash separates hosts and options


def split_uri(uri: str) -> UriParts:
    """Split a connection string. Raise InvalidURI for an unknown scheme, a missing host, or unencoded credentials."""
    is_srv = uri.startswith(SRV_SCHEME)
    if not is_srv and not uri.startswith(SCHEME):
        raise InvalidURI(f"a MongoDB URI must begin with {SCHEME!r} or {SRV_SCHEME!r}")
    rest = uri[len(SRV_SCHEME if is_srv else SCHEME) :]
    before_options, _, options = rest.partition("?")
    authority, slash, path = before_options.partition("/")
    # An '@' in the path or first option name means that the userinfo has an unencoded '/' or '?'.
    if "@" in path or ("@" not in authority and "@" in options.partition("=")[0]):
        raise InvalidURI(USERINFO_RULE)
    userinfo, at_sign, hosts = authority.rpartition("@")
    if not hosts:
        raise InvalidURI(
            "a MongoDB URI must have at least one host; the path of a Unix domain socket must be percent-encoded"
        )
    return UriParts(is_srv, userinfo if at_sign else None, hosts, path, options, bool(slash))


def parse_userinfo(userinfo: str) -> tuple[str, str]:
    """Split and decode the userinfo of a connection string: ``username`` or ``username:password``.

    A plus sign is decoded as a space, because :func:`urllib.parse.quote_plus` encodes a space as a plus sign. If the
    username or password contains characters that `quote_plus` would have encoded, its plus signs stay plus signs.

    :param userinfo: the text before the at-sign.
    :raises gmongo.errors.InvalidURI: the username is empty, or reserved characters are not
        percent-encoded.
    """
    if "@" in userinfo or userinfo.count(":") > 1 or _BAD_ESCAPE_PATTERN.search(userinfo):
        raise InvalidURI(USERINFO_RULE)
    username, _, password = userinfo.partition(":")
    if not username:
        raise InvalidURI("the username of a URI must not be empty")
    return _decode(username), _decode(password)


def parse_namespace(path: str) -> tuple[str | None, str | None]:
    """Decode the path ``database`` or ``database.collection``. A missing name is None."""
    if not path:
        return None, None
    database, dot, collection = unquote(path).partition(".")
    if not database or _FORBIDDEN_IN_DATABASE.intersection(database):
        raise InvalidURI(
            "the database name of a URI must not be empty or contain '/', '\\', '\"', '$', a space or a NUL;"
            " reserved characters of a username or password, and the path of a Unix domain socket,"
            " must be percent-encoded"
        )
    return database, collection if dot else None


def _decode(component: str) -> str:
    return unquote_plus(component) if _FORM_ENCODED_PATTERN.fullmatch(component) else unquote(component)
