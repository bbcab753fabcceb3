"""The statements of ``docs/retries.md`` agree with the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gmongo import MongoClient
from gmongo.execution.retry import BASE_BACKOFF, MAX_RETRIES, TokenBucket, backoff
from gmongo.testing import Deployment

PAGE = (Path(__file__).parents[2] / "docs" / "retries.md").read_text("utf-8")


@pytest.mark.requirement("BP-70")
def test_retries_page_states_that_every_overloaded_operation_is_retried() -> None:
    (row,) = re.findall(r"^\| \*\*the server is overloaded\*\*.*$", PAGE, re.MULTILINE)
    assert "**every operation**" in row
    assert "five times" in row


@pytest.mark.requirement("BP-71")
def test_retries_page_names_label_and_option_for_custom_retry_loops() -> None:
    section = PAGE.split("## If the application has retry loops of its own")[1].split("\n## ")[0]
    assert "SystemOverloadedError" in section
    assert "maxAdaptiveRetries=0" in section


@pytest.mark.requirement("BP-70")
def test_numbers_on_retries_page_equal_constants() -> None:
    waits = [f"{backoff(retry, BASE_BACKOFF, 1.0) * 1000:g}" for retry in range(MAX_RETRIES)]
    assert f"up to {', '.join(waits[:-1])} and {waits[-1]} milliseconds" in PAGE
    assert f"{TokenBucket.CAPACITY} tokens" in PAGE
    assert f"| `maxAdaptiveRetries` | {MAX_RETRIES} |" in PAGE
    assert f"| `baseBackoffMS` | {BASE_BACKOFF * 1000:g} |" in PAGE


def test_retries_page_lists_keys_of_retry_stats() -> None:
    section = PAGE.split("### Statistics")[1].split("### Options")[0]
    with Deployment.standalone() as deployment, MongoClient(deployment.uri) as client:
        assert set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)) == set(client.retry_stats())
