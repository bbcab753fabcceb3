"""The task that ``celery -A tests.apps.tasks worker -P gevent`` runs."""

from __future__ import annotations

import os
from typing import Any

from celery import Celery

from gmongo import MongoClient


def celery_app(folder: str) -> Celery:
    """Return a Celery application whose broker stores each message as a file in a folder."""
    app = Celery("hosted", broker="filesystem://localhost")
    app.conf.update(
        broker_transport_options={
            "data_folder_in": folder,
            "data_folder_out": folder,
            "control_folder": f"{folder}/control",
            "polling_interval": 0.05,
        },
        broker_connection_retry_on_startup=True,
        task_ignore_result=True,
        worker_enable_remote_control=False,
    )
    return app


if "HOSTED_DATABASE" in os.environ:
    app = celery_app(os.environ["HOSTED_FOLDER"])
    client: MongoClient[dict[str, Any]] = MongoClient(os.environ["HOSTED_DATABASE"])
    notes = client.hosted.notes

    @app.task(name="hosted.note")
    def store_and_read_note(number: int) -> None:
        notes.insert_one({"_id": number})
        found = notes.find_one({"_id": number})
        client.hosted.task_results.insert_one({"_id": number, "found": found})
