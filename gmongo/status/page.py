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
    """WSGI application that shows the MongoDB clients of processes, as a page that refreshes itself, or as JSON.

    A request for JSON has the query ``?format=json``.

    ::

        from werkzeug.middleware.dispatcher import DispatcherMiddleware
        from gmongo.status import StatusPage

        app.wsgi_app = DispatcherMiddleware(app.wsgi_app, {"/debug/mongodb": StatusPage()})

    The page has no access control: mount it behind the access control of the application. It answers GET only, changes
    nothing, sends nothing to servers, and contains no secrets and no documents.

    :param directory: the directory of published states, including the state of this process; see
        :func:`~gmongo.status.publish`. None (the default) shows this process only.
    :param query_text: True shows the text of slow operations, which contains user data; False by default. Clients keep
        the text if they have ``slow_operation_ms``, and ``query_text_max_length`` in ``tracing``.
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
        except (ConfigurationError, OSError) as error:  # a change of the directory since the construction
            return [unavailable_state("", str(error))]

    def _content(self) -> DocumentDict:
        states = self.states()
        return {"summary": summary(states), "processes": states}

    def __call__(self, environ: DocumentDict, start_response: StartResponse) -> Iterable[bytes]:
        """Answer a request.

        :param environ: the WSGI environment of the request.
        :param start_response: the WSGI function that starts the response.
        """
        if environ.get("REQUEST_METHOD", "GET") not in ("GET", "HEAD"):
            start_response("405 Method Not Allowed", [("Allow", "GET, HEAD"), *_NOTHING])
            return []
        requested = parse_qs(environ.get("QUERY_STRING", "")).get("format", [""])[-1]
        if requested == "json":
            kind, body = "application/json", json.dumps(self._content()).encode()
        else:
            kind, body = "text/html; charset=utf-8", _PAGE
        start_response("200 OK", [("Content-Type", kind), ("Content-Length", str(len(body))), *_HEADERS])
        return [] if environ.get("REQUEST_METHOD") == "HEAD" else [body]


def _source(text: str, tag: str) -> str:
    """Return the source hash of the text between two tags, for the content security policy."""
    content = text.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0]
    return f"'sha256-{b64encode(sha256(content.encode()).digest()).decode()}'"


def _page_text() -> str:
    """Return the page with its style and its script."""
    html, css, js = (
        files("gmongo.status").joinpath(f"page.{kind}").read_text("utf-8") for kind in ("html", "css", "js")
    )
    return html.replace("<style></style>", f"<style>\n{css}</style>").replace(
        "<script></script>", f"<script>\n{js}</script>"
    )


_TEXT = _page_text()
_PAGE = _TEXT.encode()
_POLICY = (
    f"default-src 'none'; connect-src 'self'; script-src {_source(_TEXT, 'script')}; "
    f"style-src {_source(_TEXT, 'style')}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_NOTHING = [("Content-Type", "text/plain"), ("Content-Length", "0")]
_HEADERS = [
    ("Cache-Control", "no-store"),
    ("Content-Security-Policy", _POLICY),
    ("Referrer-Policy", "no-referrer"),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
]
