"""What has happened to the servers of late, for people: failed checks, elections, servers that came and went."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

from gmongo import _clock
from gmongo.sdam.server_description import ServerDescription
from gmongo.server_type import SERVER_TYPE
from gmongo.wire.address import Address

_KEPT = 100


class Happening(NamedTuple):
    """Something that has happened to a server.

    :param moment: on the clock of :mod:`gmongo._clock`.
    :param kind: what it was.
    :param address: of the server.
    :param error: why, if there is a reason.
    :param times: how often, since something else happened to the server; `moment` is that of the last time.
    :param first: the moment of the first time.
    """

    moment: float
    kind: str
    address: Address
    error: BaseException | None
    times: int
    first: float


class History:
    """The last hundred happenings of one topology."""

    __slots__ = ("happenings",)

    def __init__(self) -> None:
        self.happenings: deque[Happening] = deque(maxlen=_KEPT)

    def check_failed(self, description: ServerDescription) -> None:
        """A monitor's check has found the server unusable."""
        self._add("check failed", description.address, description.error)

    def changed(self, old: Mapping[Address, ServerDescription], new: Mapping[Address, ServerDescription]) -> None:
        """Note what distinguishes the servers of two descriptions of the topology. Does not switch."""
        for address in new.keys() - old.keys():
            self._add("joined", address)
        for address in old.keys() - new.keys():
            self._add("left", address)
        for address, now in new.items():
            was = old.get(address)
            kind = None if was is None else _change(was, now)
            if kind is not None:
                self._add(kind, address, now.error)

    def _add(self, kind: str, address: Address, error: BaseException | None = None) -> None:
        times, happenings = 1, self.happenings
        moment = first = _clock.monotonic()
        for last in reversed(happenings):
            if last.address == address:
                if last.kind == kind and type(last.error) is type(error):
                    happenings.remove(last)
                    times += last.times
                    first = last.first
                break
        happenings.append(Happening(moment, kind, address, error, times, first))


def _change(was: ServerDescription, now: ServerDescription) -> str | None:
    if was.server_type == now.server_type:
        is_primary = now.server_type == SERVER_TYPE.RSPrimary
        return "elected again" if is_primary and was.election_id != now.election_id else None
    if now.server_type == SERVER_TYPE.RSPrimary:
        return "elected primary" if was.is_server_type_known else "found: primary"
    if was.server_type == SERVER_TYPE.RSPrimary:
        return "primary lost" if now.is_server_type_known else "primary became unknown"
    return f"became {now.server_type_name}" if was.is_server_type_known else f"found: {now.server_type_name}"
