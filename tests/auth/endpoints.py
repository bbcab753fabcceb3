"""Local HTTP services that replace cloud services in tests, and issue credentials."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gevent.pywsgi import WSGIServer


class Endpoint:
    """Context manager that runs an HTTP service.

    :param answer: the function that answers a request. Its arguments are the method, the path with
        the query, the headers with names in lower case, and the body. The function returns the
        status and the body of the response.
    """

    def __init__(self, answer: Callable[[str, str, dict[str, str], str], tuple[int, str]]) -> None:
        self.answer = answer
        self.requests: list[tuple[str, str, dict[str, str], str]] = []
        self._server = WSGIServer(("127.0.0.1", 0), self._serve, log=None)

    def __enter__(self) -> Endpoint:
        self._server.start()
        self.host = f"127.0.0.1:{self._server.server_port}"
        self.url = f"http://{self.host}"
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop(timeout=0)

    def _serve(self, environ: dict[str, Any], start_response: Any) -> list[bytes]:
        headers = {
            name[5:].lower().replace("_", "-"): value for name, value in environ.items() if name.startswith("HTTP_")
        }
        path = environ["PATH_INFO"] + (f"?{environ['QUERY_STRING']}" if environ["QUERY_STRING"] else "")
        body = environ["wsgi.input"].read().decode()
        self.requests.append((environ["REQUEST_METHOD"], path, headers, body))
        status, text = self.answer(*self.requests[-1])
        start_response(f"{status} Whatever", [("Content-Type", "text/plain")])
        return [text.encode(errors="surrogateescape")]
