"""GSSAPI (RFC 4752): Kerberos authentication, which needs the optional library ``gssapi``."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, ClassVar, TypeVar

from gevent import get_hub
from gevent import socket as gevent_socket

from gmongo._native_threads import result_or_exception
from gmongo.auth.conversation import SaslConversation
from gmongo.auth.credential import Credential
from gmongo.errors import ConfigurationError, OperationFailure

if TYPE_CHECKING:
    from gssapi import SecurityContext

T = TypeVar("T")

_NO_LAYER_BIT = 1  # bit for the absence of a security layer (RFC 4752)
_LAYER_MESSAGE_SIZE = 4


def gssapi_library() -> ModuleType:
    """Import and return the module ``gssapi``, or raise ConfigurationError."""
    try:
        return importlib.import_module("gssapi")
    except ImportError as error:
        raise ConfigurationError(
            f"authMechanism GSSAPI needs the library gssapi: pip install gmongo[gssapi] ({error})"
        ) from error


class GssapiConversation(SaslConversation):
    """One Kerberos conversation. By default, `host` is part of the Kerberos service name.

    Native threads call the library functions that may query a Kerberos server.
    """

    mechanism = "GSSAPI"
    can_be_speculative: ClassVar[bool] = False

    def __init__(self, credential: Credential, host: str) -> None:
        super().__init__(credential.source)
        self._credential = credential
        self._host = host
        self._context: SecurityContext = None

    def first_payload(self) -> bytes:
        properties = self._credential.properties
        mode = str(properties.get("CANONICALIZE_HOST_NAME", "none"))
        host = properties.get("SERVICE_HOST") or canonical_host(self._host, mode)
        service = f"{properties['SERVICE_NAME']}@{host}"
        if properties.get("SERVICE_REALM"):
            service = f"{properties['SERVICE_NAME']}/{host}@{properties['SERVICE_REALM']}"
        self._context, token = _run_in_thread(self._open_context, gssapi_library(), service)
        return token or b""

    def _open_context(self, gssapi: ModuleType, service: str) -> tuple[SecurityContext, bytes | None]:
        name_types, credential = gssapi.NameType, self._credential
        user = gssapi.Name(credential.username, name_types.user)
        if credential.password is None:
            initiator = gssapi.Credentials(name=user, usage="initiate")
        else:
            acquired = gssapi.raw.acquire_cred_with_password(user, credential.password.encode(), usage="initiate")
            initiator = acquired.creds
        kind = name_types.kerberos_principal if "/" in service else name_types.hostbased_service
        name = gssapi.Name(service, kind)
        context = gssapi.SecurityContext(name=name, creds=initiator, usage="initiate")
        return context, context.step()

    def respond(self, payload: bytes) -> bytes:
        if not self._context.complete:
            token: bytes | None = _run_in_thread(self._context.step, payload)
            return token or b""
        self.has_sent_last = True  # the last message contains the username
        offer: bytes = self._context.unwrap(payload).message
        if len(offer) != _LAYER_MESSAGE_SIZE or not offer[0] & _NO_LAYER_BIT:
            raise OperationFailure("GSSAPI: the server requires a security layer")
        choice = bytes([_NO_LAYER_BIT, 0, 0, 0]) + (self._credential.username or "").encode()
        wrapped_choice: bytes = self._context.wrap(choice, False).message
        return wrapped_choice


def canonical_host(host: str, mode: str) -> str:
    """Return the host name for the Kerberos service name. `mode` selects the DNS queries for the canonical name."""
    mode = mode.lower()
    if mode in ("none", "false"):
        return host
    try:
        addresses = gevent_socket.getaddrinfo(host, None, 0, 0, gevent_socket.IPPROTO_TCP, gevent_socket.AI_CANONNAME)
        _family, _type, _protocol, name, address = addresses[0]
    except OSError:
        return host
    if mode in ("forwardandreverse", "true"):
        try:
            name = gevent_socket.getnameinfo(address, gevent_socket.NI_NAMEREQD)[0]
        except OSError:
            pass
    return str(name or host).lower()


def _run_in_thread(work: Callable[..., T], *arguments: object) -> T:
    result: T | Exception = get_hub().threadpool.apply(result_or_exception, (work, *arguments))
    if isinstance(result, Exception):
        raise OperationFailure(f"GSSAPI: {result}") from result
    return result
