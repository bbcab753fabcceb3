"""Concurrent queries to the OCSP responders of a certificate. The driver uses the first conclusive response."""

from __future__ import annotations

from collections.abc import Callable

import gevent
from gevent.event import Event

from gmongo import _clock
from gmongo._background import keep_loop_alive
from gmongo._safe_log import safely
from gmongo.wire.ocsp.request import Request
from gmongo.wire.ocsp.responder import query
from gmongo.wire.ocsp.response import NoResponse, Response, parse_response
from gmongo.wire.race import Race
from gmongo.wire.timeout import interrupt_after
from gmongo.wire.tls import ocsp_log
from gmongo.wire.transport import Transport, TransportError

_MOST_RESPONDERS = 4
_PAUSE = 60.0  # seconds without queries after failed queries, so that new connections do not wait for responders


class Fetch:
    """OCSP queries about one certificate in background greenlets.

    The queries end after the first conclusive answer or after `seconds`. All connections that need the answer share
    the queries, which continue if a waiting connection is closed. `remember` receives the conclusive answer.
    """

    def __init__(self, request: Request, seconds: float, remember: Callable[[Request, Response], None]) -> None:
        self.answer: Response | None = None
        self._again_at = _clock.monotonic() + seconds + _PAUSE
        self._transports: list[Transport | Race] = []
        self._ended = Event()
        responders = request.responders[:_MOST_RESPONDERS]
        self._pending = len(responders)
        for url in responders:
            greenlet = gevent.Greenlet(self._query, url, request, seconds, remember)
            # the link runs even if a kill ends the greenlet before its start
            greenlet.link(self._query_ended)
            greenlet.start()

    @property
    def is_over(self) -> bool:
        """True if the queries have ended, and either gave an answer or the pause after failed queries is over."""
        return self._ended.is_set() and (self.answer is not None or _clock.monotonic() >= self._again_at)

    def wait(self, ref: bool) -> None:
        """Wait until the queries end. `ref` is True if the wait keeps the event loop alive."""
        timer = keep_loop_alive() if ref and not self._ended.is_set() else None
        try:
            self._ended.wait()
        finally:
            if timer is not None:
                timer.close()

    def mark_forked(self) -> None:
        """Prevent a forked child from using the inherited sockets."""
        for each in self._transports:
            each.mark_forked(TransportError("the parent process queries the OCSP responder"))

    def _query(self, url: str, request: Request, seconds: float, remember: Callable[[Request, Response], None]) -> None:
        limit = NoResponse(f"the OCSP responder at {url} does not answer within {seconds:g} seconds")
        transports: list[Transport | Race] = []

        def attach(transport: Transport | Race) -> None:
            transports.append(transport)
            self._transports.append(transport)

        try:
            with interrupt_after(seconds, limit, ref=False):
                answer = parse_response(request, query(url, request.encoded, attach))
            if answer.is_conclusive and self.answer is None:
                self.answer = answer
                remember(request, answer)
                self._ended.set()
        except NoResponse as error:
            safely(ocsp_log.info, "%s", error)
        finally:
            for each in transports:
                each.close()
                self._transports.remove(each)

    def _query_ended(self, _greenlet: object) -> None:
        self._pending -= 1
        if not self._pending:
            self._ended.set()
