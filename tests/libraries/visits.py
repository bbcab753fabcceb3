"""Send the requests of a visitor to an example application.

The responses depend only on the name of the visitor.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from gevent import socket


class Browser:
    """HTTP client of a server on the loopback interface."""

    def __init__(self, port: int) -> None:
        self._port = port

    def __call__(self, method: str, path: str, body: Any = None, mime: str = "application/json") -> tuple[int, Any]:
        """Send a request, and return the status and the body of the response.

        Decode a body in JSON. If the body of an error response is not JSON, return None instead of
        the body.
        """
        content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        head = [f"{method} {path} HTTP/1.0", f"Content-Type: {mime}", f"Content-Length: {len(content)}", "", ""]
        with socket.create_connection(("127.0.0.1", self._port)) as connection:
            connection.sendall("\r\n".join(head).encode() + content)
            response = b"".join(iter(lambda: connection.recv(65536), b""))
        headers, _, response_body = response.partition(b"\r\n\r\n")
        status = int(headers.split()[1])
        if b"application/json" in headers:
            return status, json.loads(response_body)
        return status, response_body if status < 400 else None


def visit_gallery(browser: Browser, name: str) -> list[Any]:
    """Send the requests of one visitor to ``examples/flask_pymongo``, and return the responses."""
    picture = bytes(range(256)) * 2000  # larger than a GridFS chunk
    return [
        browser("GET", f"/artists/{name}"),
        browser("PUT", f"/artists/{name}", {"born": 1901, "tags": ["a", {"b": None}]}),
        browser("PUT", f"/artists/{name}", {"born": 1902}),
        browser("GET", f"/artists/{name}"),
        browser("PUT", f"/artists/{name}/pictures/sea", picture, "image/x-test"),
        browser("GET", f"/artists/{name}/pictures/sea")[1] == picture,
        browser("GET", f"/artists/{name}/pictures/sea")[1] == picture,
        browser("GET", f"/artists/{name}/pictures/sky"),
        browser("GET", f"/artists/{name}/popular"),
        browser("DELETE", f"/artists/{name}"),
        browser("DELETE", f"/artists/{name}"),
    ]


def visit_journal(browser: Browser, name: str) -> list[Any]:
    """Send the requests of one visitor to ``examples/mongoengine``, and return the responses."""
    responses: list[Any] = [
        browser("PUT", f"/authors/{name}"),
        browser("PUT", f"/authors/{name}"),
        browser("PUT", f"/authors/{'x' * 41}"),
    ]
    post_responses = [
        browser("POST", f"/authors/{name}/posts", {"title": f"{name} {number}", "tags": [f"{name}-tag"] * number})
        for number in range(3)
    ]
    responses += [status for status, _ in post_responses]
    for text in ("good", "bad"):
        responses.append(browser("POST", f"/posts/{post_responses[0][1]['id']}/comments", {"text": text}))
    responses += [
        browser("GET", f"/posts?word={name}-tag"),
        browser("GET", f"/posts?word={name}"),
        browser("GET", "/tags")[1].get(f"{name}-tag"),
        browser("GET", f"/authors/{name}"),
        browser("GET", f"/authors/nobody-{name}"),
        browser("POST", f"/authors/{name}/posts", {"tags": []}),
    ]
    return responses


VISITS: dict[str, Callable[[Browser, str], list[Any]]] = {"flask_pymongo": visit_gallery, "mongoengine": visit_journal}
