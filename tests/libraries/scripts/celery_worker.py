"""Tests of the Celery example. The Celery worker runs tasks in greenlets.

MongoDB is the broker, the result backend and the database of the tasks.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import gevent
import pytest
from celery import chord, group
from celery.exceptions import TimeoutError as CeleryTimeout

ROOT = Path(__file__).resolve().parents[3]
os.environ["MONGO_URI"] = os.environ["MONGODB_URI"].rstrip("/") + "/celery_example"
sys.path.insert(0, str(ROOT))

from examples.celery.tasks import app, count_words, longest, shortest, summary  # noqa: E402

COMMAND = ["-m", "celery", "-A", "examples.celery.tasks", "worker", "-P", "gevent", "-c", "8", "--loglevel", "INFO"]


@pytest.fixture(scope="module")
def worker(tmp_path_factory):
    log = tmp_path_factory.mktemp("celery") / "log"
    runner = ["-m", "gmongo"] if os.environ["GMONGO_DRIVER"] == "gmongo" else []
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, *runner, *COMMAND], cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        yield process
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()
        print(log.read_text())


def test_finished_tasks_return_results(worker):
    results = [count_words.delay(f"text {number}", "one two " * number) for number in range(50)]
    assert [each.get(timeout=30) for each in results] == [2 * number for number in range(50)]


def test_failed_task_raises_its_error(worker):
    with pytest.raises(ValueError, match="empty"):
        longest.delay([]).get(timeout=30)


def test_tasks_with_timeouts_return_results(worker):
    texts = [count_words.s(f"limited {number}", "word " * number) for number in (3, 1, 2)]
    assert group(texts).apply_async().get(timeout=30) == [3, 1, 2]
    assert shortest.delay([f"limited {number}" for number in (1, 2, 3)]).get(timeout=30) == "limited 1"


def test_group_and_chord_return_results(worker):
    texts = [count_words.s(f"group {number}", "word " * number) for number in range(5)]
    assert group(texts).apply_async().get(timeout=30) == [0, 1, 2, 3, 4]
    assert chord(texts, summary.s()).apply_async().get(timeout=30) == {"texts": 5, "words": 10}


def test_wait_for_forgotten_result_raises_timeout_error(worker):
    result = count_words.delay("forgotten", "a b")
    assert result.get(timeout=30) == 2
    result.forget()
    with pytest.raises(CeleryTimeout):
        app.AsyncResult(result.id).get(timeout=0.2)


def test_twenty_greenlets_get_their_own_results(worker):
    def count(number):
        return count_words.delay(f"greenlet {number}", "x " * number).get(timeout=30)

    greenlets = [gevent.spawn(count, number) for number in range(20)]
    gevent.joinall(greenlets, raise_error=True)
    assert [each.value for each in greenlets] == list(range(20))
