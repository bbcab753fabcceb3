"""Judges a row of the table on a server that is not MongoDB: is it a difference of gmongo's, or the server's own?"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from .differences import ACCIDENTS, explained
from .portrait import Raised, same
from .scene import GMONGO, PYMONGO, Outcome, Scene

_REPEATS = 3


class Verdict(Enum):
    """What comes of a row."""

    SAME = "same"
    SKIPPED = "skipped"
    DIFFERENT = "different"


class Judgement(NamedTuple):
    """A verdict.

    :param reason: why the row is skipped, as the server has shown it.
    """

    verdict: Verdict
    theirs: Outcome
    ours: Outcome
    reason: str = ""


def judge(scene: Scene, source: str, simulation: Callable[[], Scene]) -> Judgement:
    """Play a row through both drivers, and look for the reason if they differ.

    :param scene: the server.
    :param simulation: has a scene of a simulated deployment, which answers as MongoDB does. It is asked only if the
        drivers differ.
    """
    scene.forget()
    ours = theirs = scene.play(PYMONGO, source)
    if not scene.unknown:
        ours = scene.play(GMONGO, source)
    if scene.unknown:
        return Judgement(Verdict.SKIPPED, theirs, ours, sorted(scene.unknown)[0])
    if explained(source, theirs, ours) is not None:
        return Judgement(Verdict.SAME, theirs, ours)
    reason = _of_its_own(scene, source, theirs) or _beside_mongodb(simulation(), source, theirs, ours)
    return Judgement(Verdict.SKIPPED if reason else Verdict.DIFFERENT, theirs, ours, reason)


def _of_its_own(scene: Scene, source: str, theirs: Outcome) -> str:
    again = (scene.play(PYMONGO, source) for _ in range(_REPEATS))
    return "" if all(same(theirs, each) for each in again) else "it answers PyMongo twice in two ways"


def _beside_mongodb(simulation: Scene, source: str, theirs: Outcome, ours: Outcome) -> str:
    """What the server does to PyMongo, where MongoDB answers PyMongo otherwise, and both drivers alike."""
    true_theirs, true_ours = simulation.compare(source)
    if same(true_theirs, theirs):
        return ""
    if isinstance(theirs.error, Raised) and theirs.error.classes[0] in ACCIDENTS:
        return f"PyMongo stumbles over its answer ({theirs.error.classes[0]})"
    if explained(source, true_theirs, true_ours) is None:
        return ""
    as_there = same(true_ours.error, ours.error) and same(true_ours.returned, ours.returned)
    if isinstance(theirs.error, Raised):
        if theirs.error.classes[0] == "ConfigurationError" and as_there:
            return f"it does not have what PyMongo asks of it first: {theirs.text[:80]}"
        if "ConnectionFailure" in theirs.error.classes and as_there:
            return "it breaks off PyMongo's connection, and answers gmongo as MongoDB does"
    is_refusal = "OperationFailure" in repr((true_theirs.error, true_theirs.returned))
    return "it takes from PyMongo what MongoDB refuses, and gmongo does not send" if as_there and is_refusal else ""
