"""Scenes that are played with gmongo and, for comparison, with PyMongo under monkey-patching.

What is asserted is gmongo's part. PyMongo's is measured and printed (``pytest -rP``), and not asserted, except that
gmongo takes less CPU: it does not claim to support most of this, and another version may do better.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import gevent
import pytest

from gmongo.testing import Deployment, DeploymentProcess
from tests.apps.hosting import Load, connections, hosted
from tests.gevent.beside.playing import Player, beside, play, warnings
from tests.support.wait import until

pytestmark = pytest.mark.long

WAITERS = 1000


SCENES = (
    ("first use", "find_one", "insert_one"),
    ("find and getMore", "check-out from a full pool"),
    ("transaction",),
)


def each_of(names, scene):
    """Play it with each of the names, at the same time."""
    players = [gevent.spawn(scene, name) for name in names]
    try:
        gevent.joinall(players, raise_error=True)
    finally:
        gevent.killall(players)
    return {name: player.value for name, player in zip(names, players, strict=True)}


def together(program, driver, *arguments, groups):
    """Play it in one process for each group of scenes; returns what came of all scenes."""
    found = each_of(groups, lambda group: json.loads(play(program, driver, *arguments, *group)))
    return {name: outcome for group in found.values() for name, outcome in group.items()}


def test_at_every_switch():
    """A kill, a foreign time-out, or one after the other is thrown, early and late."""
    found = beside(lambda driver: together("interrupted", driver, groups=SCENES))
    for driver, scenes in found.items():
        total = sum((Counter(tally) for tally in scenes.values()), Counter())
        print(f"{driver}, all scenes: {dict(total)}")
    for name, tally in found["gmongo"].items():
        assert tally.pop("points") >= 6, name
        assert tally == {"points where something is lost": 0}, name


def outage(driver, patience, ends, recovers=False):
    """What came of a thousand waiters; and the CPU seconds they took in a second, and the most handshakes at once."""
    with (
        Deployment.replica_set(members=1) as deployment,
        Player("outage", driver, deployment.uri, patience, ends) as each,
    ):
        assert each.line() == "ready", each.complaints
        (member,) = deployment.members
        member.kill()
        each.go_on()
        found = {"CPU": float(each.line())}
        if recovers:
            member.restart()
            member.delay(0.002)
        found["handshakes"] = most_handshakes(member, each)
        return {**found, **json.loads(each.rest())}


def most_handshakes(member, player):
    most = 0
    while player.process.poll() is None:
        shaking = [each for each in member.connections.values() if not each.operations["find"]]
        most = max(most, len(shaking) - 2)  # two connections are the monitor's
        gevent.sleep(0.0005)
    return most


def test_outage_that_ends():
    found = beside(lambda driver: outage(driver, "30000", "own", recovers=True))["gmongo"]
    assert found["errors"] == {}
    assert found["answered"] == WAITERS
    # Two at a time; one whose first find is on its way still counts, and on a busy machine that takes a while.
    assert found["handshakes"] <= 5


def test_outage_that_outlasts_the_time_outs_of_others():
    found = beside(lambda driver: outage(driver, "30000", "foreign"))
    assert found["gmongo"]["errors"] == {"its own Timeout": WAITERS}
    assert found["gmongo"]["CPU"] < found["pymongo"]["CPU"]


HELD = (
    ("checks, polled", "a dead server"),
    ("checks, streamed",),
    ("an operation with socketTimeoutMS", "a handshake", "a waiter whose turn comes"),
)


def test_held_loop():
    def held(driver):
        with DeploymentProcess("--replica-set", "1") as one:
            return together("held", driver, one.uri.partition("?")[0], groups=HELD)

    found = beside(held)["gmongo"]
    assert [found[name] for group in HELD[:2] for name in group] == [{}, {"found": True}, {}]
    for name in HELD[2]:
        assert found[name].pop("under way") > 0, name
        assert list(found[name]) == ["answered"], name


WAYS = ("os", "gevent", "multiprocessing")


def fork(driver, way, state):
    """What child and parent say; what the child sent on the parent's connections, and which of them were lost."""
    with Deployment.replica_set(members=1) as deployment, Player("forked", driver, deployment.uri, way, state) as each:
        assert each.line() == "before the fork", each.complaints
        (member,) = deployment.members
        if state == "busy":
            until(lambda: len(deployment.commands.named("find")) == 8)
        else:
            until(lambda: not any(connection.busy_with for connection in member.connections.values()))
        before, log = set(member.connections), len(deployment.commands)
        each.go_on()
        said = [each.line(), each.line()]
        sent = [command.name for command in deployment.commands[log:] if command.connection in before]
        lost = len(before - set(member.connections))
        each.go_on()
        said += [json.loads(each.line()), each.rest()]
        return {"said": said, "sent": sent, "lost": lost, "complaints": complaints(each)}


def complaints(player):
    return {**player.warnings, "tracebacks": player.complaints.count("Traceback")}


def forks(state):
    """Way -> what comes of it."""
    return beside(lambda driver: each_of(WAYS, lambda way: fork(driver, way, state)))["gmongo"]


def test_fork():
    """While nothing else is going on: so all that is sent on the parent's connections is the child's."""
    said = ["child: works", "child ended with 0", {}, "parent: answered"]
    expected = {"said": said, "sent": [], "lost": 0, "complaints": {"tracebacks": 0}}
    assert forks("quiet") == dict.fromkeys(WAYS, expected)


def test_fork_while_greenlets_wait_for_replies():
    for found in forks("busy").values():
        assert not set(found.pop("sent")) - {"hello", "ismaster"}  # the parent's monitor may have something to say
        said = ["child: works", "child ended with 0", {"answered": 8}, "parent: answered"]
        assert found == {"said": said, "lost": 0, "complaints": {"tracebacks": 0}}


def ended(driver, scene):
    """What it says, how it ended, and what is left at the server. PyMongo does not always return."""
    bound = 3 if driver == "pymongo" else 60
    with Deployment.replica_set(members=1) as deployment, Player("ended", driver, deployment.uri, scene) as each:
        assert each.line() == "opened", each.complaints
        each.go_on()
        rest = gevent.spawn(each.rest)
        if scene == "drop":
            until(lambda: rest.ready() or not deployment.members[0].connections)
            each.go_on()
        rest.join(timeout=bound)
        said = rest.value.splitlines() if rest.ready() else "does not return"
        rest.kill()
        return {"said": said, "warnings": each.warnings}


ENDS = {
    "join": ["returned"],
    "end": [],
    "drop": ["collected"],
    "thread": ["there: InvalidOperation: a MongoClient belongs to the native thread", "here: works"],
}


def test_ends():
    found = beside(lambda driver: each_of(ENDS, lambda scene: ended(driver, scene)))["gmongo"]
    for scene, said in ENDS.items():
        assert [line[: len(start)] for line, start in zip(found[scene]["said"], said, strict=True)] == said
        assert found[scene]["warnings"] == {}


COMMAND = ("-m", "gunicorn", "-k", "gevent", "-b", "127.0.0.1:0", "--graceful-timeout", "5", "-w", "2", "--preload")
SETTINGS = ("-c", str(Path(__file__).parents[1] / "apps" / "gunicorn_settings.py"))


def test_gunicorn_with_preload(tmp_path):
    """The client is used before the workers are forked."""
    pytest.importorskip("gunicorn")
    pytest.importorskip("packaging", reason="gunicorn's gevent worker needs it")

    def preloaded(driver):
        application = "tests.gevent.beside.application:application"
        with Deployment.replica_set(members=1) as deployment:
            log = tmp_path / driver
            with hosted(deployment, log, *COMMAND, *SETTINGS, application, BESIDE_DRIVER=driver) as host:
                with Load(host.port()) as load:
                    until(lambda: len(set(load.answered_by)) == 2)
                status = host.end()
                until(lambda: not connections(deployment))
                return {"status": status, "warnings": warnings("\n".join(host.lines))}

    assert beside(preloaded)["gmongo"] == {"status": 0, "warnings": {}}
