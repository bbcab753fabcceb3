"""Background cleanup of commands and transactions that interrupted greenlets have left."""

from __future__ import annotations

from collections import deque
from math import inf
from weakref import WeakMethod

from bson.errors import BSONError
from gevent import sleep

from gmongo import _clock
from gmongo._background import Wakeup, spawn_for
from gmongo._documents import DocumentDict
from gmongo.errors import OperationFailure, PyMongoError
from gmongo.execution.executor import Executor
from gmongo.execution.operation import Operation
from gmongo.execution.server_session import ServerSession
from gmongo.execution.sessions import bind_session
from gmongo.operations.end_sessions import KillSessions
from gmongo.wire.address import Address
from gmongo.wire.transport import without_frames

# The delays before the cleanup attempts, in seconds. The interrupted command may arrive after the
# first attempt.
_DELAYS = (0.1, 0.4, 1.5)
_ATTEMPT_TIMEOUT = 1.0  # seconds
# For this time after an interruption, attempts without a reply do not count, because the server may be paused.
_UNANSWERED_TIMEOUT = 60.0  # seconds


class _InterruptedSession:
    """Session with an interrupted command, or with a transaction that the operation `abort` ends."""

    def __init__(self, session: ServerSession, abort: Operation | None) -> None:
        self.session = session
        self.abort = abort
        self.attempt_count = 0
        self.created = _clock.monotonic()
        # A dirty session without a transaction has at most an open cursor, whose end is not urgent.
        delay = _DELAYS[-1] if session.dirty and abort is None else _DELAYS[0]
        self.due = self.created + delay

    def postpone(self, error: BaseException | None) -> bool:
        """Schedule the next cleanup attempt after `error`. Return False after the last attempt."""
        now = _clock.monotonic()
        was_answered = error is None or isinstance(error, OperationFailure)
        if was_answered or now > self.created + _UNANSWERED_TIMEOUT:
            self.attempt_count += 1
        if self.attempt_count >= len(_DELAYS):  # a concurrent close() may have made attempts
            return False
        self.due = now + (_DELAYS[self.attempt_count] if was_answered else _DELAYS[-1])
        return True


class SessionReaper:
    """Queue of sessions and transactions from interrupted operations and finalisers. A greenlet processes the queue.

    After the late replies to all interrupted commands, a session returns to the session pool, which
    discards the session if a `killSessions` command failed.
    """

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        executor.sessions.session_taker = WeakMethod(self.take)
        self._taken_sessions: deque[_InterruptedSession] = deque()  # finalisers may append sessions
        self._remnants: dict[_InterruptedSession, None] = {}
        self._is_running = False
        self._epoch = 0  # the number of forks before the start of the greenlet
        self._wakeup: Wakeup | None = None

    def take(self, session: ServerSession, abort: Operation | None) -> None:
        """Add an unused session, or a transaction that the operation `abort` ends, to the queue.

        Any thread may call this method, which does no I/O, and does not switch greenlets.
        """
        hub = self._executor.topology.hub
        if hub is not None:  # the client is open
            self._taken_sessions.append(_InterruptedSession(session, abort))
            hub.loop.run_callback_threadsafe(self._start)

    def _start(self) -> None:
        if not self._is_running or self._epoch != self._executor.epoch:
            self._is_running, self._epoch = True, self._executor.epoch
            self._wakeup = Wakeup()
            spawn_for(self, self._wakeup, SessionReaper._step)
        if self._wakeup is not None:
            self._wakeup.set()

    def end_all(self) -> list[DocumentDict]:
        """Make one cleanup attempt for each session, at least 0.1 seconds after the interruption.

        The wait is necessary, because a `killSessions` that arrives before an interrupted `find`
        would leave the cursor of the `find` open. Return the identifiers of the remaining sessions
        for `endSessions`, which closes a cursor that a slow server opens later.
        """
        self._accept_taken()
        arrival_time = 0.0
        for remnant in self._remnants:
            if remnant.session.unanswered_counts and not remnant.attempt_count:
                arrival_time = max(arrival_time, remnant.created + _DELAYS[0])
                remnant.due += _ATTEMPT_TIMEOUT  # the greenlet makes no attempt during the pause
        pause = arrival_time - _clock.monotonic()
        if pause > 0:
            sleep(pause)
        self.reap(inf)
        return [remnant.session.lsid for remnant in self._remnants]

    def close(self) -> None:
        """Forget all sessions, and end the reaper greenlet, without a switch of greenlets."""
        self._taken_sessions.clear()
        self._remnants.clear()
        if self._wakeup is not None:
            self._wakeup.set()

    def _step(self) -> float:
        """Clean up the due sessions. Return the seconds until the next session is due."""
        self.reap(_clock.monotonic())
        if self._executor.topology.hub is None or not (self._remnants or self._taken_sessions):
            self._is_running = False
            return -1.0  # a negative number ends the greenlet of spawn_for()
        return max(0.0, min((remnant.due for remnant in self._remnants), default=0.0) - _clock.monotonic())

    def reap(self, now: float) -> None:
        """Clean up the sessions that are due at `now`. A forked child discards inherited sessions."""
        self._accept_taken()
        remnants_by_address: dict[Address, list[_InterruptedSession]] = {}
        # A session is due after its delay, or after the late reply to the interrupted command.
        for remnant in [each for each in self._remnants if each.due <= now or not each.session.unanswered_counts]:
            if remnant.session.epoch != self._executor.epoch:
                self._forget(remnant)
            elif remnant.abort is not None:
                self._abort(remnant, remnant.abort)
            elif remnant.session.unanswered_counts:
                for address in remnant.session.unanswered_counts:
                    remnants_by_address.setdefault(address, []).append(remnant)
            else:
                self._forget(remnant)
                self._executor.sessions.restore(remnant.session)
        self._kill(remnants_by_address)

    def _accept_taken(self) -> None:
        # Do not iterate over the queue, because a finaliser may append during the iteration.
        while self._taken_sessions:
            remnant = self._taken_sessions.popleft()
            remnant.session.wakeup = self._wakeup
            self._remnants[remnant] = None

    def _abort(self, remnant: _InterruptedSession, abort: Operation) -> None:
        was_answered = not remnant.session.unanswered_counts
        error = self._run(abort)
        if error is None or (was_answered and isinstance(error, OperationFailure)) or not remnant.postpone(error):
            self._forget(remnant)

    def _kill(self, remnants_by_address: dict[Address, list[_InterruptedSession]]) -> None:
        errors: dict[_InterruptedSession, BaseException | None] = {}
        for address, remnants in remnants_by_address.items():
            error = None
            # The Stable API version 1 does not contain killSessions.
            if not self._executor.topology.settings.connection.server_api.get("apiStrict"):
                error = self._run(KillSessions([remnant.session.lsid for remnant in remnants], address))
            for remnant in remnants:
                # After an error, the killSessions may arrive late, and interrupt a later command.
                remnant.session.dirty = remnant.session.dirty or error is not None
                errors[remnant] = errors.get(remnant) or error
        for remnant, error in errors.items():
            if not remnant.postpone(error):
                self._forget(remnant)

    def _forget(self, remnant: _InterruptedSession) -> None:
        self._remnants.pop(remnant, None)  # a concurrent close() may have removed the session

    def _run(self, operation: Operation) -> BaseException | None:
        """Run an operation within the time limit of one attempt, and return its error or None."""
        try:
            with bind_session(None):
                self._executor.run(operation, None, _clock.monotonic() + _ATTEMPT_TIMEOUT)
        except (PyMongoError, BSONError) as error:
            return without_frames(error)
        return None
