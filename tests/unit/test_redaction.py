"""The driver withholds a server message that quotes a long value of the sent command."""

from __future__ import annotations

from typing import Any

import pytest

from gmongo._redaction import redacted
from tests.support.cases import with_cases

WITHHELD_MESSAGE = "message withheld, because it quotes secret data"


@with_cases
@pytest.mark.parametrize("field", ["errmsg", "$err"])
def test_only_message_that_quotes_long_sent_value_is_withheld(
    sent_value: Any, message: str, is_withheld: bool, field: str
) -> None:
    reply = {"ok": 0, "code": 18, field: message, "other": message}
    other = "$err" if field == "errmsg" else "errmsg"
    assert redacted(reply, sent_value) == {"ok": 0, "code": 18, field: WITHHELD_MESSAGE if is_withheld else message}
    assert redacted({**reply, other: "plain"}, sent_value)[other] == "plain"
    assert reply[field] == message


def test_message_that_quotes_permitted_name_is_not_withheld() -> None:
    reply = {"ok": 0, "errmsg": "no user anna"}
    assert redacted(reply, ["anna"], ["anna"]) == reply
    assert redacted(reply, ["anna"], ["otto"])["errmsg"] == WITHHELD_MESSAGE


def test_redaction_keeps_only_fields_that_describe_the_error() -> None:
    names = "code codeName errmsg $err errorLabels topologyVersion $clusterTime operationTime"
    kept = {"ok": 0, **dict.fromkeys(names.split(), "x")}
    assert redacted({**kept, "other": "x"}, "hidden") == kept


def test_redaction_does_not_change_successful_reply() -> None:
    reply = {"ok": 1, "errmsg": "hidden", "other": "hidden"}
    assert redacted(reply, "hidden") is reply
    assert redacted({"ok": 0, "code": 5}, "hidden") == {"ok": 0, "code": 5}
