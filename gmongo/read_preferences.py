"""Read preferences: the servers of a deployment to which a client sends reads.

The classes raise :class:`TypeError` for a parameter of a wrong type, and :class:`ValueError` for a
value that is not allowed. Specifications: Server Selection ("Read Preference") and Max Staleness.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence

from gmongo._documents import Document, DocumentDict
from gmongo._parameter_docs import describes_parameters
from gmongo._server_facts import wire_versions
from gmongo._truncated_repr import short
from gmongo.errors import ConfigurationError

__all__ = [
    "Nearest",
    "Primary",
    "PrimaryPreferred",
    "ReadPreference",
    "Secondary",
    "SecondaryPreferred",
    "make_read_preference",
    "read_pref_mode_from_name",
]

_NO_MAX_STALENESS = -1
# Kombu imports this name.
_MONGOS_MODES = ("primary", "primaryPreferred", "secondary", "secondaryPreferred", "nearest")

_TagSets = Sequence[Document]


def _checked_tag_sets(tag_sets: object) -> list[Document] | None:
    if tag_sets is None:
        return None
    if not isinstance(tag_sets, (list, tuple)):
        raise TypeError(f"tag_sets must be a list of tag sets, not {short(tag_sets)}")
    if not tag_sets:
        raise ValueError("tag_sets must be None or contain at least one tag set, not []")
    for tags in tag_sets:
        if not isinstance(tags, Mapping):
            raise TypeError(f"a tag set must be a mapping of tags to values, not {short(tags)}")
    return list(tag_sets)


def _checked_max_staleness(max_staleness: object) -> int:
    if not isinstance(max_staleness, int):
        raise TypeError(f"max_staleness must be an integer number of seconds or -1, not {short(max_staleness)}")
    if max_staleness != _NO_MAX_STALENESS and max_staleness <= 0:
        raise ValueError(f"max_staleness must be a positive number of seconds or -1, not {max_staleness}")
    return max_staleness


def _checked_hedge(hedge: object) -> Document | None:
    if hedge is None:
        return None
    if not isinstance(hedge, Mapping):
        raise TypeError(f"hedge must be a mapping, not {short(hedge)}")
    warnings.warn("hedged reads are deprecated since MongoDB 8.0", DeprecationWarning, stacklevel=3)
    return hedge


class _ReadPreference:
    """Base class of the read preferences. Each subclass has one of the five modes.

    :param tag_sets: a non-empty list of tag sets such as ``{"dc": "ny"}``, in the order of
        preference. None (the default) matches any member.
    :param max_staleness: the maximum lag of a secondary, in seconds (at least 90); -1 (the default)
        means no limit.
    :param hedge: the options of hedged reads on a sharded cluster (MongoDB 4.4, deprecated since
        8.0); None by default.
    """

    __slots__ = ("__document", "__hedge", "__max_staleness", "__tag_sets")
    _mode: int

    def __init__(
        self, tag_sets: _TagSets | None = None, max_staleness: int = _NO_MAX_STALENESS, hedge: Document | None = None
    ) -> None:
        self.__tag_sets = _checked_tag_sets(tag_sets)
        self.__max_staleness = _checked_max_staleness(max_staleness)
        self.__hedge = _checked_hedge(hedge)
        document: DocumentDict = {"mode": self.mongos_mode}
        if self.__tag_sets and self.__tag_sets != [{}]:
            document["tags"] = self.__tag_sets
        if self.__max_staleness != _NO_MAX_STALENESS:
            document["maxStalenessSeconds"] = self.__max_staleness
        if self.__hedge:
            document["hedge"] = self.__hedge
        self.__document = document

    @property
    def name(self) -> str:
        """The name of the class of this read preference, such as ``"SecondaryPreferred"``."""
        return type(self).__name__

    @property
    def mode(self) -> int:
        """The number of the mode, from 0 (primary) to 4 (nearest)."""
        return self._mode

    @property
    def mongos_mode(self) -> str:
        """The name of the mode in commands, such as ``"secondaryPreferred"``."""
        return _MONGOS_MODES[self._mode]

    @property
    def document(self) -> DocumentDict:
        """The document that commands contain as ``$readPreference``."""
        return self.__document.copy()

    @property
    def tag_sets(self) -> _TagSets:
        """The tag sets in the order of preference. The default is ``[{}]``."""
        return list(self.__tag_sets) if self.__tag_sets else [{}]

    @property
    def max_staleness(self) -> int:
        """The maximum replication lag of a secondary, in seconds. -1 means no limit."""
        return self.__max_staleness

    @property
    def hedge(self) -> Document | None:
        """The options of hedged reads, or None."""
        return self.__hedge

    @property
    def min_wire_version(self) -> int:
        """The minimum wire version that supports this read preference."""
        return 0 if self.__max_staleness == _NO_MAX_STALENESS else wire_versions.MAX_STALENESS

    def __eq__(self, other: object) -> bool:
        if isinstance(other, _ReadPreference):
            return (
                self._mode == other.mode
                and self.tag_sets == other.tag_sets
                and self.__max_staleness == other.max_staleness
                and self.__hedge == other.hedge
            )
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return (
            f"{self.name}(tag_sets={self.__tag_sets!r}, max_staleness={self.__max_staleness!r}, hedge={self.__hedge!r})"
        )


class Primary(_ReadPreference):
    """Read preference for the primary only. This read preference has neither tag sets nor a maximum staleness."""

    __slots__ = ()
    _mode = 0

    def __init__(self) -> None:
        super().__init__()

    def __repr__(self) -> str:
        return "Primary()"


@describes_parameters(_ReadPreference)
class PrimaryPreferred(_ReadPreference):
    """Read preference for the primary, or for a secondary if the primary is unavailable."""

    __slots__ = ()
    _mode = 1


@describes_parameters(_ReadPreference)
class Secondary(_ReadPreference):
    """Read preference for secondaries only."""

    __slots__ = ()
    _mode = 2


@describes_parameters(_ReadPreference)
class SecondaryPreferred(_ReadPreference):
    """Read preference for secondaries, or for the primary if no secondary is suitable."""

    __slots__ = ()
    _mode = 3


@describes_parameters(_ReadPreference)
class Nearest(_ReadPreference):
    """Read preference for any data-bearing member in the latency window (``localThresholdMS``)."""

    __slots__ = ()
    _mode = 4


class ReadPreference:
    """The five read preferences, without tag sets and without a maximum staleness."""

    PRIMARY = Primary()
    PRIMARY_PREFERRED = PrimaryPreferred()
    SECONDARY = Secondary()
    SECONDARY_PREFERRED = SecondaryPreferred()
    NEAREST = Nearest()


_CLASS_OF_MODE: tuple[type[_ReadPreference], ...] = (Primary, PrimaryPreferred, Secondary, SecondaryPreferred, Nearest)


def make_read_preference(
    mode: int, tag_sets: _TagSets | None, max_staleness: int = _NO_MAX_STALENESS
) -> _ReadPreference:
    """Return a read preference with the given mode, tag sets and maximum staleness.

    :param mode: the number of the mode, from 0 (primary) to 4 (nearest), as
        :func:`read_pref_mode_from_name` returns.
    :param tag_sets: a list of tag sets in the order of preference; None matches any member.
    :param max_staleness: the maximum replication lag of a secondary, in seconds; -1 (the default) means no limit.
    :raises ConfigurationError: `mode` is primary, but `tag_sets` or `max_staleness` is set.
    :raises IndexError: no mode has the number `mode`.
    """
    if mode == 0:
        if tag_sets not in (None, [{}]):
            raise ConfigurationError("the read preference primary cannot be combined with tags")
        if max_staleness != _NO_MAX_STALENESS:
            raise ConfigurationError("the read preference primary cannot be combined with max_staleness")
        return Primary()
    if mode not in range(5):
        raise IndexError(f"a read preference mode is a number from 0 to 4, not {short(mode)}")
    return _CLASS_OF_MODE[mode](tag_sets, max_staleness)


def read_pref_mode_from_name(name: str) -> int:
    """Return the number of a mode for :func:`make_read_preference`.

    :param name: the name of the mode in commands, such as ``"primaryPreferred"``.
    :returns: the number of the mode, from 0 (primary) to 4 (nearest).
    :raises ValueError: no mode has the name `name`.
    """
    if name not in _MONGOS_MODES:
        raise ValueError(f"a read preference mode is one of {', '.join(_MONGOS_MODES)}, not {short(name)}")
    return _MONGOS_MODES.index(name)
