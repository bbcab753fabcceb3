"""What a visitor does on the example applications. Each has names of its own, and gets the same answers every time."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from gevent import socket


class Browser:
    """Sends requests to a port of this machine."""

    def __init__(self, port: int) -> None:
        self._port = port

    def __call__(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> tuple[int, Any]:
        """The status and the body of the answer, decoded if it is JSON, and left out if it is the text of an error."""
        content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        head = [f"{method} {path} HTTP/1.0", f"Content-Type: {kind}", f"Content-Length: {len(content)}", "", ""]
        with socket.create_connection(("127.0.0.1", self._port)) as asking:
            asking.sendall("\r\n".join(head).encode() + content)
            answer = b"".join(iter(lambda: asking.recv(65536), b""))
        headers, _, received = answer.partition(b"\r\n\r\n")
        status = int(headers.split()[1])
        if b"application/json" in headers:
            return status, json.loads(received)
        return status, received if status < 400 else None


def visit_gallery(browser: Browser, name: str) -> list[Any]:
    """A visit of ``examples/flask_pymongo``."""
    picture = bytes(range(256)) * 2000  # two chunks of GridFS
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
    """A visit of ``examples/mongoengine``."""
    answers: list[Any] = [
        browser("PUT", f"/authors/{name}"),
        browser("PUT", f"/authors/{name}"),
        browser("PUT", f"/authors/{'x' * 41}"),
    ]
    posted = [
        browser("POST", f"/authors/{name}/posts", {"title": f"{name} {number}", "tags": [f"{name}-tag"] * number})
        for number in range(3)
    ]
    answers += [status for status, _ in posted]
    for text in ("good", "bad"):
        answers.append(browser("POST", f"/posts/{posted[0][1]['id']}/comments", {"text": text}))
    answers += [
        browser("GET", f"/posts?word={name}-tag"),
        browser("GET", f"/posts?word={name}"),
        browser("GET", "/tags")[1].get(f"{name}-tag"),
        browser("GET", f"/authors/{name}"),
        browser("GET", f"/authors/nobody-{name}"),
        browser("POST", f"/authors/{name}/posts", {"tags": []}),
    ]
    return answers


VISITS: dict[str, Callable[[Browser, str], list[Any]]] = {"flask_pymongo": visit_gallery, "mongoengine": visit_journal}
