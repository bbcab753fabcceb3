"""Tests of virtual time: a virtual hour takes milliseconds of real time, and runs with equal
seeds have the same order of events.
"""

from __future__ import annotations

import contextlib
import datetime
import io
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import gevent
import pytest
from gevent import socket
from gevent.event import Event
from gevent.pool import Pool

from gmongo import MongoClient, _clock, _object_ids, monitoring
from gmongo.errors import ServerSelectionTimeoutError, WaitQueueTimeoutError
from gmongo.testing import Deployment, VirtualTime, virtual_loop
from tests.support.wait import eventually

HOUR = 3600.0


@pytest.fixture
def virtual_clock():
    """Start virtual time at a whole number of seconds, so that differences of times are exact."""
    with VirtualTime(start=1_000_000) as clock:
        yield clock


class TestTimers:
    def test_sleep_takes_no_real_time(self, virtual_clock):
        before = virtual_clock.monotonic()
        gevent.sleep(HOUR)
        assert virtual_clock.monotonic() == before + HOUR == _clock.monotonic()

    def test_timers_fire_in_order_of_time(self, virtual_clock):
        seen = []

        def sleep(seconds):
            gevent.sleep(seconds)
            seen.append((seconds, virtual_clock.monotonic() - before))

        before = virtual_clock.monotonic()
        gevent.joinall([gevent.spawn(sleep, seconds) for seconds in (30, 10, 20, 10.5)])
        assert seen == [(10, 10), (10.5, 10.5), (20, 20), (30, 30)]

    def test_simultaneous_timers_fire_in_order_of_priority(self, virtual_clock):
        seen = []
        loop = gevent.get_hub().loop
        timers = [loop.timer(5, priority=priority) for priority in (-1, 1, 0)]
        for timer in timers:
            timer.start(seen.append, timer.priority)
        gevent.sleep(6)
        assert seen == [1, 0, -1]

    def test_greenlets_of_timer_run_before_next_timer(self, virtual_clock):
        seen = []
        loop = gevent.get_hub().loop
        for name in "abc":
            loop.timer(5).start(lambda name=name: gevent.spawn(seen.append, name))
            loop.timer(5).start(lambda name=name: seen.append(name.upper()))
        gevent.sleep(6)
        assert seen == ["a", "A", "b", "B", "c", "C"]

    def test_timeouts_expire_in_virtual_time(self, virtual_clock):
        with gevent.Timeout(5) as limit, pytest.raises(gevent.Timeout) as caught:
            gevent.sleep(10)
        assert caught.value is limit
        assert Event().wait(HOUR) is False
        assert gevent.spawn(gevent.sleep, 10).join(timeout=3) is None
        assert gevent.with_timeout(1, gevent.sleep, 2, timeout_value="late") == "late"

    def test_stopped_timer_does_not_fire(self, virtual_clock):
        seen = []
        timer = gevent.get_hub().loop.timer(5)
        timer.start(seen.append, 1)
        assert timer.active
        timer.stop()
        assert not timer.active
        gevent.sleep(10)
        timer.start(seen.append, 2)
        gevent.sleep(4)
        assert seen == []
        gevent.sleep(2)
        assert seen == [2] and not timer.active

    def test_repeating_timer_fires_at_each_interval(self, virtual_clock):
        seen = []
        with gevent.get_hub().loop.timer(5, 10) as timer:
            timer.start(lambda: seen.append(virtual_clock.monotonic() - before))
            before = virtual_clock.monotonic()
            gevent.sleep(36)
        assert seen == [5, 15, 25, 35]

    def test_timer_without_reference_does_not_keep_hub_alive(self):
        # The test runs in a new native thread, because the hub of a new thread has no other timers.

        def wait_in_thread():
            with VirtualTime():
                gevent.get_hub().loop.timer(5, ref=False).start(lambda: None)
                with pytest.raises(gevent.hub.LoopExit):
                    Event().wait()
                # After a LoopExit, gevent starts a new hub greenlet.
                with pytest.raises(gevent.hub.LoopExit):
                    Event().wait()
                return gevent.get_hub().join(timeout=1)

        with ThreadPoolExecutor(1) as executor:
            assert executor.submit(wait_in_thread).result() is True

    def test_virtual_clock_does_not_advance_during_work_of_native_thread(self, virtual_clock):
        before = virtual_clock.monotonic()
        with gevent.Timeout(HOUR):
            assert gevent.get_hub().threadpool.apply(_sleep_in_thread) == "done"
        assert virtual_clock.monotonic() == before

    def test_delayed_data_at_socket_is_read_before_timeout(self, virtual_clock, monkeypatch):
        # The replacement of `sleep` sends the data late, as a busy machine does: after the virtual
        # loop has begun to wait for data.
        ours, theirs = socket.socketpair()
        sleeps = []

        def send_during_wait(seconds):
            if not sleeps:
                theirs.send(b"x")
            sleeps.append(seconds)

        with ours, theirs:
            gevent.sleep(1)
            monkeypatch.setattr(virtual_loop.time, "sleep", send_during_wait)
            for _ in range(3):
                sleeps.clear()
                with gevent.Timeout(5):
                    assert ours.recv(1) == b"x"

    def test_error_of_callback_is_printed_by_hub(self, virtual_clock, capsys):
        gevent.get_hub().loop.timer(1).start(lambda: 1 / 0)
        gevent.sleep(2)
        assert "ZeroDivisionError" in capsys.readouterr().err

    def test_each_of_many_timers_fires(self, virtual_clock):
        pool = Pool(1000)
        for number in range(3000):
            pool.spawn(gevent.sleep, number % 97)
        pool.join()


def _sleep_in_thread():
    time.sleep(0.1)
    return "done"


class TestAdvance:
    def test_advance_fires_timers_that_are_due(self, virtual_clock):
        sleeper = gevent.spawn(gevent.sleep, 60)
        virtual_clock.advance(59)
        assert not sleeper.dead
        virtual_clock.advance(1)
        assert sleeper.dead

    def test_advance_moves_clock_by_exact_number_of_seconds(self, virtual_clock):
        before = virtual_clock.monotonic()
        gevent.spawn(gevent.sleep, HOUR)
        virtual_clock.advance(0)
        virtual_clock.advance(1.5)
        assert virtual_clock.monotonic() == before + 1.5

    @pytest.mark.parametrize("seconds", [-1, "1", None, True, float("inf"), float("nan")])
    def test_advance_by_invalid_seconds_raises_value_error(self, virtual_clock, seconds):
        with pytest.raises(ValueError, match="not a nonnegative number"):
            virtual_clock.advance(seconds)

    def test_simultaneous_advances_overlap(self, virtual_clock):
        before = virtual_clock.monotonic()
        gevent.joinall(
            [gevent.spawn(virtual_clock.advance, 5), gevent.spawn(virtual_clock.advance, 3)],
            raise_error=True,
        )
        assert virtual_clock.monotonic() == before + 5

    def test_deployment_advances_virtual_time(self, virtual_clock, mongodb_replica_set):
        before = virtual_clock.monotonic()
        mongodb_replica_set.advance(HOUR)
        assert virtual_clock.monotonic() == before + HOUR

    def test_advance_without_virtual_time_raises_runtime_error(self):
        with (
            Deployment.standalone() as deployment,
            pytest.raises(RuntimeError, match="with VirtualTime"),
        ):
            deployment.advance(1)
        with pytest.raises(RuntimeError, match="not virtual here"):
            VirtualTime().advance(1)


class TestStartAndEnd:
    def test_clocks_start_at_given_times(self):
        date = datetime.datetime(2030, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc)
        with VirtualTime(start=1000.0, date=date) as virtual:
            assert (virtual.monotonic(), virtual.date()) == (1000.0, date)
            gevent.sleep(HOUR)
            assert (virtual.monotonic(), virtual.date()) == (
                4600.0,
                date + datetime.timedelta(hours=1),
            )

    def test_date_without_time_zone_is_in_utc(self):
        with VirtualTime(date=datetime.datetime(2030, 1, 2)) as virtual:
            assert virtual.date() == datetime.datetime(2030, 1, 2, tzinfo=datetime.timezone.utc)

    def test_clocks_start_at_real_time_by_default(self):
        before = time.monotonic(), time.time() - 0.001
        with VirtualTime() as virtual:
            virtual_times = virtual.monotonic(), virtual.date().timestamp()
        after = time.monotonic(), time.time() + 0.001  # virtual time rounds its start date
        assert all(early <= now <= late for early, now, late in zip(before, virtual_times, after, strict=True))

    def test_nested_virtual_time_raises_runtime_error(self, virtual_time):
        with pytest.raises(RuntimeError, match="virtual already"), VirtualTime():
            pass
        with pytest.raises(RuntimeError, match="virtual already"), virtual_time:
            pass

    def test_timers_fire_in_real_time_after_end_of_virtual_time(self):
        with VirtualTime():
            sleeper = gevent.spawn(gevent.sleep, 0.05)
            gevent.sleep(0.02)
            stopped_timer = gevent.get_hub().loop.timer(0.01)
            stopped_timer.start(pytest.fail)
            repeating = gevent.get_hub().loop.timer(0.01, 0.01)
            seen = []
            repeating.start(seen.append, 1)
            late_timer = gevent.get_hub().loop.timer(0.01)
            began = time.monotonic()
        stopped_timer.stop()
        assert _clock.monotonic is time.monotonic
        late_timer.start(seen.append, 2)
        sleeper.join()
        assert time.monotonic() - began > 0.02
        eventually(lambda: seen.count(1) >= 2 and seen.count(2) == 1)
        repeating.stop()

    def test_error_in_block_ends_virtual_time(self):
        with pytest.raises(ZeroDivisionError), VirtualTime():
            raise ZeroDivisionError
        assert _clock.monotonic is time.monotonic
        gevent.sleep(0.001)


class Heartbeats(monitoring.ServerHeartbeatListener):
    def __init__(self):
        self.times = []

    def started(self, event):
        self.times.append(_clock.monotonic())

    def succeeded(self, event):
        pass

    def failed(self, event):
        pass


class TestDriverInVirtualTime:
    def test_server_selection_times_out_after_30_seconds(self, virtual_clock, mongodb_standalone):
        mongodb_standalone.members[0].kill()
        before = virtual_clock.monotonic()
        with (
            MongoClient(mongodb_standalone.uri) as client,
            pytest.raises(ServerSelectionTimeoutError),
        ):
            client.db.c.find_one()
        assert virtual_clock.monotonic() == pytest.approx(before + 30)

    @pytest.mark.parametrize("mode", ["poll", "stream"])
    def test_monitor_sends_heartbeat_every_ten_seconds(self, virtual_clock, mongodb_standalone, mode):
        heartbeats = Heartbeats()
        options = {"serverMonitoringMode": mode, "event_listeners": [heartbeats]}
        with MongoClient(mongodb_standalone.uri, **options) as client:
            client.admin.command("ping")
            del heartbeats.times[:]
            virtual_clock.advance(HOUR)
        gaps = {round(end - start, 3) for start, end in zip(heartbeats.times, heartbeats.times[1:], strict=False)}
        assert gaps == {10.0} and 359 <= len(heartbeats.times) <= 360

    def test_object_id_has_virtual_date(self, virtual_clock, mongodb_standalone):
        with MongoClient(mongodb_standalone.uri, heartbeatFrequencyMS=3_600_000) as client:
            first = client.test.things.insert_one({}).inserted_id
            virtual_clock.advance(24 * HOUR)
            second = client.test.things.insert_one({}).inserted_id
        assert second.generation_time - first.generation_time == datetime.timedelta(days=1)

    def test_idle_connections_are_closed(self, virtual_clock, mongodb_standalone):
        with MongoClient(mongodb_standalone.uri, maxIdleTimeMS=600_000) as client:
            gevent.joinall([gevent.spawn(client.admin.command, "ping") for _ in range(5)], raise_error=True)
            (member,) = mongodb_standalone.members
            virtual_clock.advance(590)
            assert len(member.connections) > 2
            virtual_clock.advance(20)
            # The remaining two connections belong to the monitor.
            assert len(member.connections) == 2

    def test_expired_session_is_not_reused(self, virtual_clock, mongodb_replica_set):
        with MongoClient(mongodb_replica_set.uri) as client:
            for minutes in (0, 28, 30):
                virtual_clock.advance(minutes * 60)
                client.db.c.find_one()
            first, second, third = (each.session for each in mongodb_replica_set.commands.named("find"))
        assert first == second != third

    def test_check_out_from_full_pool_times_out(self, virtual_clock, mongodb_standalone):
        with MongoClient(mongodb_standalone.uri, maxPoolSize=1, waitQueueTimeoutMS=60_000) as client:
            blocked = {"failCommands": ["ping"], "blockConnection": True, "blockTimeMS": 120_000}
            mongodb_standalone.set_fail_point("failCommand", {"times": 1}, blocked)
            holder = gevent.spawn(client.admin.command, "ping")
            gevent.sleep(1)
            before = virtual_clock.monotonic()
            with pytest.raises(WaitQueueTimeoutError):
                client.admin.command("ping")
            assert virtual_clock.monotonic() == pytest.approx(before + 60)
            assert holder.get()["ok"] == 1

    def test_documents_with_ttl_index_expire_in_virtual_time(self, virtual_clock, mongodb_replica_set):
        with MongoClient(mongodb_replica_set.uri, tz_aware=True) as client:
            client.db.c.create_index("at", expireAfterSeconds=HOUR)
            client.db.c.insert_one({"at": virtual_clock.date()})
            virtual_clock.advance(HOUR - 100)
            assert client.db.c.count_documents({}) == 1
            virtual_clock.advance(200)
            assert client.db.c.count_documents({}) == 0

    def test_authentication_advances_clock_by_less_than_5_seconds(self, virtual_clock):
        with (
            Deployment.standalone(users={"ada": "secret"}) as deployment,
            MongoClient(deployment.uri) as client,
        ):
            before = virtual_clock.monotonic()
            client.db.c.insert_one({})
            assert virtual_clock.monotonic() == pytest.approx(before, abs=5)


HISTORY_PROGRAM = """
import datetime, hashlib, sys
import gevent
from gmongo import MongoClient, monitoring
from gmongo.testing import Deployment, VirtualTime

entries = []
ports = {}


class Commands(monitoring.CommandListener):
    def started(self, event):
        port = ports.setdefault(event.connection_id[1], len(ports))
        command = {name: value for name, value in event.command.items()}
        entries.append((round(time.monotonic(), 6), event.command_name, port, repr(command)))

    def succeeded(self, event):
        if event.command_name == "find":
            entries.append(("cursor", event.reply["cursor"]["id"]))

    def failed(self, event):
        entries.append(("failed", event.command_name, type(event.failure).__name__))


def work(number):
    for turn in range(8):
        try:
            if turn % 2:
                client.shop.orders.with_options().find({}, batch_size=2).to_list()
            else:
                result = client.shop.orders.insert_one({"worker": number, "turn": turn})
                entries.append((round(time.monotonic(), 6), number, turn, str(result.inserted_id)))
        except Exception as error:
            entries.append((round(time.monotonic(), 6), number, turn, type(error).__name__))


with (
    VirtualTime(start=1000.0, date=datetime.datetime(2030, 1, 1), seed=SEED) as time,
    Deployment.replica_set(election_delay=5) as deployment,
    MongoClient(deployment.uri, readPreference="nearest", event_listeners=[Commands()]) as client,
):
    deployment.network.loss, deployment.network.latency = 0.05, 0.02
    workers = [gevent.spawn(work, number) for number in range(4)]
    gevent.sleep(0.1)
    deployment.members.primary.kill()
    gevent.joinall(workers)
    entries.append(client.shop.orders.aggregate([{"$sample": {"size": 3}}, {"$set": {"r": {"$rand": {}}}}]).to_list())
    with client.start_session() as session:
        session.with_transaction(lambda session: client.shop.orders.insert_one({"last": 1}, session=session))
print(len(entries), hashlib.sha256(repr(entries).encode()).hexdigest())
"""


def run_history(seed, hash_seed="0"):
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    code = HISTORY_PROGRAM.replace("SEED", repr(seed))
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return done.stdout


class TestSeeds:
    def test_equal_seeds_give_equal_histories_in_two_processes(self):
        assert run_history(3, "1") == run_history(3, "2")

    def test_different_seeds_give_different_histories(self):
        assert run_history(3) != run_history(4)

    def test_equal_seeds_give_equal_histories_in_one_process(self):
        entries = []
        for _ in range(2):
            namespace = {"__name__": "history"}
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(HISTORY_PROGRAM.replace("SEED", "5"), namespace)
            entries.append(out.getvalue())
        assert entries[0] == entries[1] == run_history(5)

    def test_object_ids_after_end_of_virtual_time_are_unique(self):
        object_ids = []
        for _ in range(2):
            with VirtualTime(start=0, date=datetime.datetime(2030, 1, 1)):
                object_ids.append(_object_ids.new_object_id())
            object_ids.append(_object_ids.new_object_id())
        assert object_ids[0] == object_ids[2] and object_ids[1] != object_ids[3]

    @pytest.mark.parametrize("seed", [None, True, b"1", object()])
    def test_seed_of_invalid_type_raises_type_error(self, seed):
        with pytest.raises(TypeError, match="seed"):
            VirtualTime(seed=seed)
