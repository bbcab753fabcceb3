"""Status page: a WSGI application."""

from __future__ import annotations

import json
import os
from base64 import b64encode
from collections.abc import Callable, Iterable
from hashlib import sha256
from importlib.resources import files
from urllib.parse import parse_qs

from gmongo._documents import DocumentDict
from gmongo.errors import ConfigurationError
from gmongo.status.state import process_state
from gmongo.status.summary import summary
from gmongo.status.workers import publish, unavailable_state, worker_states

StartResponse = Callable[[str, list[tuple[str, str]]], object]


class StatusPage:
    """WSGI application: a page with the state of the MongoDB clients. The page refreshes the state every second.

    With the query ``?format=json``, the response is the state as JSON.

    ::

        from werkzeug.middleware.dispatcher import DispatcherMiddleware
        from gmongo.status import StatusPage

        app.wsgi_app = DispatcherMiddleware(app.wsgi_app, {"/debug/mongodb": StatusPage()})

    The page has no access control, so the application must protect the page. The page answers only
    GET and HEAD requests, changes no state, sends no command to servers, and contains no secrets.
    The page contains user data only if `query_text` is True.

    :param directory: the directory in which processes publish their states (see :func:`~gmongo.status.publish`). The
        page shows all states in the directory. None (the default) shows only this process.
    :param query_text: True to show the text of slow operations, which contains user data; False by default. Clients
        keep the text if they have the option ``slow_operation_ms``, and ``query_text_max_length`` in ``tracing``.
    :raises ConfigurationError: the directory belongs to another user, or other users may write to it.
    """

    def __init__(self, directory: str | os.PathLike[str] | None = None, query_text: bool = False) -> None:
        if directory is not None:
            publish(directory, query_text)
        self._directory = directory
        self._query_text = query_text

    def states(self) -> list[DocumentDict]:
        """Return the state of each process. See :func:`~gmongo.status.process_state`."""
        if self._directory is None:
            return [process_state(self._query_text)]
        try:
            return worker_states(self._directory, self._query_text)
        except (ConfigurationError, OSError) as error:  # the directory has changed since `__init__`
            return [unavailable_state("", str(error))]

    def __call__(self, environ: DocumentDict, start_response: StartResponse) -> Iterable[bytes]:
        """Answer an HTTP request.

        :param environ: the WSGI environment of the request.
        :param start_response: the WSGI function that starts the response.
        """
        if environ.get("REQUEST_METHOD", "GET") not in ("GET", "HEAD"):
            start_response("405 Method Not Allowed", [("Allow", "GET, HEAD"), *_EMPTY_BODY_HEADERS])
            return []
        requested_format = parse_qs(environ.get("QUERY_STRING", "")).get("format", [""])[-1]
        if requested_format == "json":
            states = self.states()
            kind, body = "application/json", json.dumps({"summary": summary(states), "processes": states}).encode()
        else:
            kind, body = "text/html; charset=utf-8", _PAGE
        start_response("200 OK", [("Content-Type", kind), ("Content-Length", str(len(body))), *_HEADERS])
        return [] if environ.get("REQUEST_METHOD") == "HEAD" else [body]


def _source_hash(text: str, tag: str) -> str:
    content = text.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0]
    return f"'sha256-{b64encode(sha256(content.encode()).digest()).decode()}'"


_HTML, _CSS, _JS = (
    files("gmongo.status").joinpath(f"page.{kind}").read_text("utf-8") for kind in ("html", "css", "js")
)
_STYLED_HTML = _HTML.replace("<style></style>", f"<style>\n{_CSS}</style>")
_PAGE_TEXT = _STYLED_HTML.replace("<script></script>", f"<script>\n{_JS}</script>")
_PAGE = _PAGE_TEXT.encode()
_POLICY = (
    f"default-src 'none'; connect-src 'self'; script-src {_source_hash(_PAGE_TEXT, 'script')}; "
    f"style-src {_source_hash(_PAGE_TEXT, 'style')}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_EMPTY_BODY_HEADERS = [("Content-Type", "text/plain"), ("Content-Length", "0")]
_HEADERS = [
    ("Cache-Control", "no-store"),
    ("Content-Security-Policy", _POLICY),
    ("Referrer-Policy", "no-referrer"),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
]
