"""The driver withholds a server message that quotes a value of the sent command."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from gmongo._redaction import redacted

REFUSED = "message withheld, because it quotes secret data"
SECRET = b"\x00s3cret \xffword"


@pytest.mark.parametrize(
    ("sent_value", "message", "is_withheld"),
    [
        ("abcd", "it was abcd.", True),
        ("abc", "it was abc.", False),
        ("abcde", "it was abcd.", False),
        ({"a": ["x", {"b": "hidden"}]}, "it was hidden", True),
        ({"hidden": 1}, "it was hidden", False),
        (("hidden",), "it was hidden", True),
        (["hidden"], "it was hidden", True),
        (5, "it was 5555", False),
        (None, "it was None", False),
        (SECRET, "it was s3cret", True),
        (SECRET, "it was word", True),
        (SECRET, "it was \x00s3cre", False),
        (SECRET, f"it was {base64.b64encode(SECRET).decode()}", True),
        (SECRET, f"it was {SECRET.hex()}", True),
        (SECRET, f"it was {SECRET.hex().upper()}", True),
        (SECRET, f"it was {SECRET.hex()[:-1]}", False),
        (b"abc", "it was abc", False),
    ],
)
@pytest.mark.parametrize("field", ["errmsg", "$err"])
def test_message_that_quotes_sent_value_is_withheld(
    sent_value: Any, message: str, is_withheld: bool, field: str
) -> None:
    reply = {"ok": 0, "code": 18, field: message, "other": message}
    other = "$err" if field == "errmsg" else "errmsg"
    assert redacted(reply, sent_value) == {"ok": 0, "code": 18, field: REFUSED if is_withheld else message}
    assert redacted({**reply, other: "plain"}, sent_value)[other] == "plain"
    assert reply[field] == message


def test_message_that_quotes_permitted_name_is_not_withheld() -> None:
    reply = {"ok": 0, "errmsg": "no user anna"}
    assert redacted(reply, ["anna"], ["anna"]) == reply
    assert redacted(reply, ["anna"], ["otto"])["errmsg"] == REFUSED


def test_redaction_does_not_change_successful_reply() -> None:
    reply = {"ok": 1, "errmsg": "hidden", "other": "hidden"}
    assert redacted(reply, "hidden") is reply
    assert redacted({"ok": 0, "code": 5}, "hidden") == {"ok": 0, "code": 5}
