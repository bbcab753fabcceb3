from __future__ import annotations

import logging
from datetime import timedelta
from types import SimpleNamespace
from unittest.mock import Mock

import gevent
import pytest
from bson import ObjectId

from gmongo import event_loggers, monitoring
from gmongo.monitoring import listeners as listeners_module
from tests.support.cases import rows

ADDRESS = ("db.example", 27017)
TOPOLOGY_ID = ObjectId()
SECOND = timedelta(seconds=1)


@pytest.fixture(autouse=True)
def no_global_listeners(monkeypatch):
    monkeypatch.setattr(listeners_module, "_registered_listeners", [])


def test_command_started_event_without_command_raises():
    with pytest.raises(ValueError, match="first field"):
        monitoring.CommandStartedEvent({}, "db", 1, ADDRESS, 1)


def test_repr_of_failed_event_shows_failure_but_succeeded_event_hides_reply():
    succeeded = monitoring.CommandSucceededEvent(SECOND, {"secret": 1}, "find", 1, ADDRESS, 2)
    failed = monitoring.CommandFailedEvent(SECOND, {"errmsg": "no"}, "find", 1, ADDRESS, 2)
    assert succeeded.reply == {"secret": 1}
    assert "secret" not in repr(succeeded)
    assert failed.failure == {"errmsg": "no"}
    assert "{'errmsg': 'no'}" in repr(failed)


@pytest.mark.parametrize("not_a_listener", [object(), "started", monitoring.CommandListener])
def test_object_that_is_no_listener_raises_type_error(not_a_listener):
    with pytest.raises(TypeError, match="must be an instance of one of CommandListener"):
        monitoring.register(not_a_listener)
    with pytest.raises(TypeError, match="must be an instance of one of CommandListener"):
        monitoring.EventListeners([not_a_listener])
    assert monitoring.global_listeners() == ()


def test_single_listener_without_list_raises_type_error():
    with pytest.raises(TypeError, match="event_listeners must be a list"):
        monitoring.EventListeners(monitoring.CommandListener())


class PoolReadyListener(monitoring.ConnectionPoolListener):
    def __init__(self, error=None):
        self.events = []
        self.error = error

    def pool_ready(self, event):
        self.events.append(event)
        if self.error is not None:
            raise self.error


def test_error_of_listener_is_logged_and_next_listener_runs(caplog):
    event = monitoring.PoolReadyEvent(ADDRESS)
    failing_listener, next_listener = PoolReadyListener(RuntimeError("my fault")), PoolReadyListener()
    monitoring.publish((failing_listener, next_listener), "pool_ready", event)
    assert failing_listener.events == next_listener.events == [event]
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("gmongo.monitoring", logging.ERROR)
    assert "PoolReadyListener.pool_ready failed on PoolReadyEvent" in record.getMessage()
    assert "my fault" in caplog.text


def test_kill_in_listener_propagates_after_next_listener_has_run():
    killed_listener, next_listener = PoolReadyListener(gevent.GreenletExit()), PoolReadyListener()
    with pytest.raises(gevent.GreenletExit):
        monitoring.publish((killed_listener, next_listener), "pool_ready", monitoring.PoolReadyEvent(ADDRESS))
    assert next_listener.events


@pytest.mark.parametrize("listener", [kind() for kind in listeners_module._Listener.__subclasses__()])
def test_each_inherited_listener_method_raises_not_implemented(listener):
    for name in (name for name in dir(listener) if not name.startswith("_")):
        with pytest.raises(NotImplementedError):
            getattr(listener, name)(Mock())


def test_error_about_missing_listener_method_is_logged(caplog):
    monitoring.publish((PoolReadyListener(),), "pool_closed", monitoring.PoolClosedEvent(ADDRESS))
    assert "NotImplementedError" in caplog.text


@pytest.mark.parametrize("exception", [gevent.GreenletExit(), gevent.Timeout(1), KeyboardInterrupt()])
def test_kill_timeout_or_interrupt_in_listener_propagates_from_publish(exception, caplog):
    with pytest.raises(type(exception)) as caught:
        monitoring.publish((PoolReadyListener(exception),), "pool_ready", monitoring.PoolReadyEvent(ADDRESS))
    assert caught.value is exception
    assert not caplog.records


def _description(type_name, writable=True, readable=True):
    return SimpleNamespace(
        server_type=type_name,
        server_type_name=type_name,
        topology_type=type_name,
        topology_type_name=type_name,
        has_writable_server=lambda: writable,
        has_readable_server=lambda: readable,
    )


def _server_change(old, new):
    return monitoring.ServerDescriptionChangedEvent(_description(old), _description(new), ADDRESS, TOPOLOGY_ID)


def _topology_change(old, new, **capabilities):
    return monitoring.TopologyDescriptionChangedEvent(_description(old), _description(new, **capabilities), TOPOLOGY_ID)


LOGGED_EVENTS = [
    (getattr(event_loggers, logger), method, getattr(monitoring, event)(*arguments), message)
    for logger, method, event, arguments, message in map(dict.values, rows(__file__, "logged events"))
]
for logger, make_event, subject in (
    (event_loggers.ServerLogger, _server_change, f"Server {ADDRESS}"),
    (event_loggers.TopologyLogger, _topology_change, f"Topology {TOPOLOGY_ID}"),
):
    LOGGED_EVENTS.append((logger, "description_changed", make_event("A", "B"), f"{subject} changed from A to B"))


@pytest.mark.parametrize(
    ("logger", "method", "event", "message"),
    LOGGED_EVENTS,
    ids=[f"{row[0].__name__}.{row[1]}" for row in LOGGED_EVENTS],
)
def test_event_loggers_log_lost_servers_as_warnings_and_other_events_at_info(logger, method, event, message, caplog):
    with caplog.at_level(logging.INFO, logger="gmongo.event_loggers"):
        monitoring.publish((logger(),), method, event)
    record = caplog.records[-1]
    is_loss = (logger, method) in ((event_loggers.HeartbeatLogger, "failed"), (event_loggers.ServerLogger, "closed"))
    level = logging.WARNING if is_loss else logging.INFO
    assert (record.name, record.levelno, record.getMessage()) == ("gmongo.event_loggers", level, message)


def test_server_logger_does_not_log_change_without_new_type(caplog):
    with caplog.at_level(logging.INFO, logger="gmongo.event_loggers"):
        monitoring.publish((event_loggers.ServerLogger(),), "description_changed", _server_change("A", "A"))
    assert not caplog.records


@pytest.mark.parametrize("writable", [True, False])
@pytest.mark.parametrize("readable", [True, False])
def test_topology_logger_warns_without_writable_or_readable_server(writable, readable, caplog):
    event = _topology_change("A", "A", writable=writable, readable=readable)
    with caplog.at_level(logging.INFO, logger="gmongo.event_loggers"):
        monitoring.publish((event_loggers.TopologyLogger(),), "description_changed", event)
    assert [
        (record.levelname, record.getMessage().removeprefix(f"Topology {TOPOLOGY_ID} ")) for record in caplog.records
    ] == [
        ("INFO", "updated"),
        *([] if writable else [("WARNING", "has no writable server")]),
        *([] if readable else [("WARNING", "has no readable server")]),
    ]
