"""Requests to HTTP services that issue credentials. The tests check addresses, timeouts and
errors.
"""

from __future__ import annotations

import ssl
from contextlib import suppress
from http.client import HTTPException
from types import SimpleNamespace
from typing import Any

import gevent
import pytest
from gevent.pywsgi import WSGIServer
from gevent.server import StreamServer
from gevent.ssl import SSLContext

from gmongo.auth import http
from gmongo.auth.http import request, request_json
from gmongo.errors import OperationFailure
from tests.auth.endpoints import Endpoint
from tests.support.cases import with_cases


@with_cases
@pytest.mark.parametrize(("error", "reason"), [(OSError("no way"), "no way"), (OSError(), "OSError")])
def test_url_scheme_selects_default_port(
    monkeypatch: pytest.MonkeyPatch, url: str, address: tuple[str, int], error: OSError, reason: str
) -> None:
    addresses = []

    def refuse_connection(address: Any) -> None:
        addresses.append(address)
        raise error

    monkeypatch.setattr(http.gevent_socket, "create_connection", refuse_connection)
    with pytest.raises(OperationFailure) as caught:
        request("a service", "GET", url, {}, 5)
    assert addresses == [address]
    assert str(caught.value) == f"a service at {url.split('/')[2]} cannot be reached: {reason}"
    assert caught.value.__cause__ is error


@pytest.mark.real_time
@pytest.mark.parametrize("is_trusted", [True, False])
def test_https_verifies_certificate(monkeypatch: pytest.MonkeyPatch, files: SimpleNamespace, is_trusted: bool) -> None:
    if is_trusted:
        monkeypatch.setenv("SSL_CERT_FILE", files.ca)

    def answer(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        start_response("200 OK", [])
        return [b"safe"]

    context = SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.server)
    server = WSGIServer(("127.0.0.1", 0), answer, log=None, error_log=None, ssl_context=context)
    server.start()
    try:
        url = f"https://localhost:{server.server_port}/p"
        if is_trusted:
            assert request("a service", "GET", url, {}, 5) == "safe"
        else:
            with pytest.raises(OperationFailure, match="CERTIFICATE_VERIFY_FAILED"):
                request("a service", "GET", url, {}, 5)
    finally:
        server.stop(timeout=0)


def test_gevent_timeout_of_caller_propagates_from_http_request() -> None:
    with (
        Endpoint(lambda *_: gevent.sleep(60)) as endpoint,
        pytest.raises(gevent.Timeout) as caught,
        gevent.Timeout(0.05) as caller_timeout,
    ):
        request("a service", "GET", endpoint.url, {}, 5)
    assert caught.value is caller_timeout


@pytest.mark.parametrize(("response", "reason"), [(b"junk\r\n\r\n", "junk"), (b"", "Remote end closed connection")])
def test_invalid_http_response_raises_operation_failure(response: bytes, reason: str) -> None:
    def reply(sock: Any, _address: Any) -> None:
        sock.recv(65536)
        sock.sendall(response)
        sock.close()

    server = StreamServer(("127.0.0.1", 0), reply)
    server.start()
    try:
        with pytest.raises(OperationFailure, match="cannot be reached: ") as caught:
            request("a service", "GET", f"http://127.0.0.1:{server.server_port}/p", {}, 5)
    finally:
        server.stop(timeout=0)
    assert str(caught.value).partition("reached: ")[2].startswith(reason)
    assert isinstance(caught.value.__cause__, HTTPException)


@pytest.mark.parametrize("text", ["", "junk", "[]", "5", "null", '"text"'])
def test_json_response_that_is_no_object_raises_operation_failure(text: str) -> None:
    with Endpoint(lambda *_: (200, text)) as endpoint, pytest.raises(OperationFailure) as caught:
        request_json("a service", "PUT", endpoint.url, {"A": "b"}, 5, "body")
    assert str(caught.value) == f"a service at {endpoint.host} did not return a JSON object"
    assert [(method, headers["a"], body) for method, _, headers, body in endpoint.requests] == [("PUT", "b", "body")]


@pytest.mark.parametrize("delay", [0, 60])
def test_connection_is_closed_after_response_and_after_timeout(monkeypatch: pytest.MonkeyPatch, delay: int) -> None:
    module, sockets, connect = http.gevent_socket, [], http.gevent_socket.create_connection
    monkeypatch.setattr(module, "create_connection", lambda address: sockets.append(connect(address)) or sockets[0])
    with Endpoint(lambda *_: (gevent.sleep(delay), (200, ""))[1]) as endpoint, suppress(OperationFailure):
        request("a service", "GET", endpoint.url, {}, 0.05)
    assert sockets[0].fileno() == -1


def test_response_text_has_replacement_characters_and_at_most_one_mebibyte() -> None:
    with Endpoint(lambda *_: (200, "\udcff" + "x" * (1 << 20))) as endpoint:
        text = request("a service", "GET", endpoint.url, {}, 5)
    assert text == "\ufffd" + "x" * ((1 << 20) - 1)
