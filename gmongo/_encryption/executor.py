"""Executor of a client with automatic encryption. Clients without automatic encryption do not import this module."""

from __future__ import annotations

from gmongo._encryption.automatic import Encrypter
from gmongo._encryption.operation import EncryptedOperation
from gmongo._traceback_scrub import clears_locals
from gmongo.events.command import CommandEvents
from gmongo.execution.executor import Executor
from gmongo.execution.operation import Operation, Result
from gmongo.execution.retry import ExecutionSettings
from gmongo.execution.sessions import SessionHandle
from gmongo.sdam.topology import Topology


class EncryptingExecutor(Executor):
    def __init__(
        self, topology: Topology, options: ExecutionSettings, events: CommandEvents, encrypter: Encrypter
    ) -> None:
        super().__init__(topology, options, events)
        self._encrypter = encrypter

    @clears_locals
    def run(self, operation: Operation, session: SessionHandle | None = None, deadline: float | None = None) -> Result:
        if deadline is None:
            deadline = self.deadline()
        encrypted = EncryptedOperation(operation, self._encrypter, deadline)
        result = super().run(encrypted, session, deadline)
        try:
            return encrypted.decrypted(result)
        except BaseException:
            self.reap(operation, result)
            raise
