"""The page: a WSGI application."""

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
from gmongo.status.workers import publish, unknown, worker_states

StartResponse = Callable[[str, list[tuple[str, str]]], object]


class StatusPage:
    """A WSGI application that shows the MongoDB clients of a process, or of several, as a page that refreshes itself,
    and as JSON (``?format=json``)::

        from werkzeug.middleware.dispatcher import DispatcherMiddleware
        from gmongo.status import StatusPage

        app.wsgi_app = DispatcherMiddleware(app.wsgi_app, {"/debug/mongodb": StatusPage()})

    It has no access control of its own: mount it behind that of the application. It answers GET only, changes nothing,
    sends nothing to servers, and holds no secrets and no documents.

    :param directory: where the processes of the application serve their states, to be shown side by side; this
        process begins to do so, as with :func:`~gmongo.status.publish`. None (the default) shows this process only.
    :param query_text: whether the text of slow operations is shown, which holds the users' data; False by default.
        There is such text if the client has ``slow_operation_ms``, and its ``tracing`` a ``query_text_max_length``.
    :raises ConfigurationError: the directory belongs to another user, or others may write there.
    """

    def __init__(self, directory: str | os.PathLike[str] | None = None, query_text: bool = False) -> None:
        if directory is not None:
            publish(directory, query_text)
        self._directory = directory
        self._query_text = query_text

    def states(self) -> list[DocumentDict]:
        """What the page shows now: the state of each process, as :func:`~gmongo.status.process_state` has it."""
        if self._directory is None:
            return [process_state(self._query_text)]
        try:
            return worker_states(self._directory, self._query_text)
        except (ConfigurationError, OSError) as error:  # it was right when the page was made
            return [unknown("", str(error))]

    def _shown(self) -> DocumentDict:
        states = self.states()
        return {"summary": summary(states), "processes": states}

    def __call__(self, environ: DocumentDict, start_response: StartResponse) -> Iterable[bytes]:
        """Answer a request.

        :param environ: of the request, as WSGI has it.
        :param start_response: as WSGI has it.
        """
        if environ.get("REQUEST_METHOD", "GET") not in ("GET", "HEAD"):
            start_response("405 Method Not Allowed", [("Allow", "GET, HEAD"), *_NOTHING])
            return []
        asked = parse_qs(environ.get("QUERY_STRING", "")).get("format", [""])[-1]
        if asked == "json":
            kind, body = "application/json", json.dumps(self._shown()).encode()
        else:
            kind, body = "text/html; charset=utf-8", _PAGE
        start_response("200 OK", [("Content-Type", kind), ("Content-Length", str(len(body))), *_HEADERS])
        return [] if environ.get("REQUEST_METHOD") == "HEAD" else [body]


def _source(text: str, tag: str) -> str:
    """What a policy for content allows: the very text between two tags."""
    inside = text.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0]
    return f"'sha256-{b64encode(sha256(inside.encode()).digest()).decode()}'"


def _whole() -> str:
    """The page with its style and its script inside."""
    html, css, js = (
        files("gmongo.status").joinpath(f"page.{kind}").read_text("utf-8") for kind in ("html", "css", "js")
    )
    return html.replace("<style></style>", f"<style>\n{css}</style>").replace(
        "<script></script>", f"<script>\n{js}</script>"
    )


_TEXT = _whole()
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
