"""Run a database server in a child process: MongoDB's `mongod` or nx-27017."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

from gmongo.testing.mongod.connection import CommandFailedError
from gmongo.testing.mongod.program import EmbeddedDatabaseError, find_program
from gmongo.testing.mongod.server import Server
from gmongo.testing.mongod.settings import Settings
from gmongo.testing.nx_server import NxServer

URI_VARIABLE = "MONGODB_URI"


class EmbeddedDatabase:
    """A database server in a child process, on the loopback interface.

    Use the class in a ``with`` block, or call :meth:`start` and :meth:`stop`. The server ends with
    this process, even if this process is killed. While a method waits for the server, other
    greenlets run.

    - ``engine="mongod"`` is MongoDB's own server as a standalone, under the Server Side Public
      License (SSPL). ``pip install 'gmongo[mongod]'`` installs version 6.0.5 on Linux (x86-64,
      glibc). For a replica set, use :class:`~gmongo.testing.EmbeddedReplicaSet`.
    - ``engine="nx"`` is nx-27017, under the MIT licence. nx-27017 executes the common commands, but
      has no replica sets, transactions, change streams or authentication. It sorts ``_id`` as text.

    gmongo runs each server as a separate program. gmongo does not import or contain the servers.

    :param path: the data folder of `mongod`, or the SQLite file of nx-27017. :meth:`start` creates a
        missing folder or file. By default the data are temporary, and :meth:`stop` removes the data.
    :param engine: ``"nx"`` (the default) or ``"mongod"``.
    :param start_timeout: seconds until the server must be ready; 30 by default.
    :param program: the path of `mongod`, if the engine is ``"mongod"``. By default the class
        searches the environment variable ``GMONGO_MONGOD``, the wheel that ``gmongo[mongod]``
        installs, and ``PATH``, in this order.
    :param settings: the settings of `mongod`, if the engine is ``"mongod"``:

        - `port`: the TCP port (by default, a free port),
        - `fail_points`: True (the default) if the server accepts the command ``configureFailPoint``,
        - `tls`: True if the server requires TLS, with certificates from
          :func:`gmongo.testing.certificates`,
        - `users`: the passwords by user name. If there are users, clients must authenticate. The
          users have the role ``root``,
        - `require_api_version`: True if the server refuses commands without a version of the Stable
          API,
        - `parameters`: server parameters, such as ``{"ttlMonitorSleepSecs": 1}``,
        - `compressors`: the names of compressors, separated by commas, ``"snappy,zstd,zlib"`` by
          default.
    :raises ValueError: `engine` is unknown, a setting is invalid, or a setting is given for an
        engine other than ``"mongod"``.
    :raises TypeError: a keyword argument is not the name of a setting.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        engine: str = "nx",
        start_timeout: float = 30.0,
        program: str | os.PathLike[str] | None = None,
        **settings: Any,
    ) -> None:
        if engine not in ("mongod", "nx"):
            raise ValueError(f"engine must be 'mongod' or 'nx', not {engine!r:.100}")
        self._settings = Settings.create("EmbeddedDatabase", settings)
        if engine != "mongod" and (settings or program):
            raise ValueError(f"the engine {engine!r} has no setting {next(iter(settings), 'program')!r}")
        self._engine = engine
        self._path = None if path is None else Path(path).absolute()
        self._start_timeout = start_timeout
        self._program = program
        self._server: Server | NxServer | None = None
        self._is_ready = False

    @property
    def server(self) -> Server:
        """The running `mongod`, an object with the methods `kill`, `stop` (SIGSTOP), `resume` and `restart`.

        :raises EmbeddedDatabaseError: the database is not running, or is not a `mongod`.
        """
        if not isinstance(self._server, Server):
            raise EmbeddedDatabaseError("there is no running mongod: use engine='mongod' and a with block")
        return self._server

    @property
    def port(self) -> int:
        """The TCP port of the server.

        :raises EmbeddedDatabaseError: the database is not running.
        """
        if self._server is None or not self._is_ready:
            raise EmbeddedDatabaseError("the embedded database is not running: call start() or use a with block")
        return self._server.port

    @property
    def uri(self) -> str:
        """The connection string, with the first user and the options that the server requires.

        :raises EmbeddedDatabaseError: the database is not running.
        """
        return self._settings.uri(f"127.0.0.1:{self.port}")

    def start(self) -> EmbeddedDatabase:
        """Start the server, and wait until the server is ready.

        :raises EmbeddedDatabaseError: the server is not installed, does not run on this machine, is
            running already, ended, or is not ready in time. In the last two cases, the error message
            shows the server's last output, and no process and no temporary folder remains.
        """
        if self._server is not None:
            raise EmbeddedDatabaseError("the embedded database is started already")
        deadline = monotonic() + self._start_timeout
        if self._engine == "mongod":
            program, port = find_program(self._program), self._settings.port
            self._server = Server(program, self._settings, self._path, port=port)
        else:
            self._server = NxServer(self._path)
        try:
            self._server.start(deadline)
            if isinstance(self._server, Server):
                self._server.create_users()
                self._server.require_api_version()
        except CommandFailedError as error:
            self.stop()
            raise EmbeddedDatabaseError(f"the server does not accept its settings: {error}") from error
        except BaseException:
            self.stop()
            raise
        self._is_ready = True
        return self

    def stop(self) -> None:
        """End the server, and remove temporary data.

        The method does nothing if the database is not running. In a fork of the process that
        started the server, the method does not end the server.
        """
        server, self._server, self._is_ready = self._server, None, False
        if server is not None:
            server.end()

    def __enter__(self) -> EmbeddedDatabase:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<EmbeddedDatabase {self.uri if self._is_ready else 'not running'}>"


@contextmanager
def database_uri(engine: str | None = None) -> Iterator[str]:
    """Yield the value of ``MONGODB_URI``.

    If the environment variable is not set, yield the URI of a new embedded database, which stops
    after the ``with`` block.

    :param engine: the engine of the embedded database. The default is the result of `default_engine`.
    :raises EmbeddedDatabaseError: ``MONGODB_URI`` is not set, and the embedded database cannot be
        started.
    """
    configured_uri = os.environ.get(URI_VARIABLE)
    if configured_uri:
        yield configured_uri
        return
    with EmbeddedDatabase(engine=engine or default_engine()) as database:
        yield database.uri


def default_engine() -> str:
    """Return ``"mongod"`` if `mongod` is installed and runs on this machine, otherwise ``"nx"``."""
    try:
        find_program()
    except EmbeddedDatabaseError:
        return "nx"
    return "mongod"
