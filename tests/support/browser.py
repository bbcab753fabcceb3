"""Headless Chromium that connects only to this machine.

A test controls Chromium over pipes with the DevTools protocol.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import gevent
from gevent.os import make_nonblocking, nb_read, nb_write

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
_CHROMIUM_OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-proxy-server",
    "--remote-debugging-pipe",
    "--window-size=1280,1100",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
)


class Page:
    """Page in Chromium."""

    def __init__(self, read_descriptor: int, write_descriptor: int) -> None:
        self._read_descriptor, self._write_descriptor = read_descriptor, write_descriptor
        self._message_ids = count(1)
        self._buffer = b""
        self._session: str | None = None
        self.console_messages: list[str] = []

    def open(self, url: str) -> None:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Runtime", "Log", "Page"):
            self.call(f"{domain}.enable")
        self.call("Page.navigate", url=url)

    def evaluate(self, expression: str) -> Any:
        """Evaluate a JavaScript expression in the page, and return the value of the expression."""
        reply = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in reply, reply
        return reply["result"].get("value")

    def text(self) -> str:
        """Return the visible text of the page."""
        return str(self.evaluate("document.body ? document.body.innerText : ''"))

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the DevTools protocol, and return the result of the method."""
        message_id = next(self._message_ids)
        message: dict[str, Any] = {"id": message_id, "method": method, "params": parameters}
        if self._session is not None and not method.startswith("Target."):
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[nb_write(self._write_descriptor, data) :]
        while True:
            answer = self._receive_message()
            if answer.get("id") == message_id:
                assert "error" not in answer, (method, answer["error"])
                result: dict[str, Any] = answer["result"]
                return result
            if answer.get("method") in ("Log.entryAdded", "Runtime.exceptionThrown"):
                self.console_messages.append(json.dumps(answer["params"]))

    def _receive_message(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            data = nb_read(self._read_descriptor, 1 << 16)
            assert data, "the browser has ended"
            self._buffer += data
        message, _, self._buffer = self._buffer.partition(b"\0")
        answer: dict[str, Any] = json.loads(message)
        return answer


@contextmanager
def browser(seconds: float = 90) -> Iterator[Page]:
    """Start Chromium, yield a page, and kill Chromium at the end of the block."""
    assert CHROMIUM is not None
    (chromium_input, write_descriptor), (read_descriptor, chromium_output) = os.pipe(), os.pipe()
    make_nonblocking(read_descriptor)
    make_nonblocking(write_descriptor)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile, gevent.Timeout(seconds):
        script = f'exec "$@" 3<&{chromium_input} 4>&{chromium_output}'
        command = ["bash", "-c", script, "bash", CHROMIUM, *_CHROMIUM_OPTIONS, f"--user-data-dir={profile}"]
        process = subprocess.Popen(
            command, pass_fds=(chromium_input, chromium_output), stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )
        os.close(chromium_input)
        os.close(chromium_output)
        try:
            yield Page(read_descriptor, write_descriptor)
        finally:
            process.kill()
            process.wait()
            os.close(read_descriptor)
            os.close(write_descriptor)
