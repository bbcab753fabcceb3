"""A retry after an overload error consumes a token. A successful operation deposits 0.1 tokens, or
1.1 tokens after a retry.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gmongo import MongoClient
from gmongo.errors import ConfigurationError, DuplicateKeyError, OperationFailure
from gmongo.execution.retry import TokenBucket
from gmongo.testing import Deployment
from tests.execution.harness import fail, set_tokens, tokens_of
from tests.support.clients import Client, Connect


def bucket_with(tokens: float) -> TokenBucket:
    bucket = TokenBucket()
    while bucket.tokens > tokens:
        bucket.consume()
    bucket.deposit(round((tokens - bucket.tokens) * 10))
    return bucket


@pytest.mark.requirement("BP-56", "BP-57")
def test_new_token_bucket_has_a_thousand_tokens() -> None:
    bucket = TokenBucket()
    assert bucket.tokens == 1000
    assert all(bucket.consume() for _ in range(1000))
    assert not bucket.consume()
    assert bucket.tokens == 0


@pytest.mark.requirement("BP-58", "BP-59", "BP-60")
@given(st.lists(st.sampled_from([None, 1, 10, 11]), max_size=200), st.integers(0, 10_000))
def test_any_sequence_of_steps_leaves_exact_number_of_tokens(steps: list[int | None], tenths: int) -> None:
    bucket, expected = bucket_with(tenths / 10), tenths
    for step in steps:
        if step is None:
            assert bucket.consume() == (expected >= 10)
            expected -= 10 if expected >= 10 else 0
        else:
            bucket.deposit(step)
            expected = min(10_000, expected + step)
        assert bucket.tokens == expected / 10


@pytest.mark.requirement("BP-10", "BP-18")
@pytest.mark.parametrize("name", ["retryTokenReturnRate", "retryTokenCapacity", "maxAttempts"])
def test_unknown_token_option_raises_configuration_error(name: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"{name}(?!\w)"):
        MongoClient("127.0.0.1", connect=False, **{name: 3})


@pytest.mark.requirement("BP-08", "BP-09", "BP-29", "BP-52")
def test_successful_first_attempt_deposits_a_tenth_of_a_token(client: Client) -> None:
    set_tokens(client, 10)
    client.db.c.insert_one({})
    assert tokens_of(client) == 10.1


@pytest.mark.requirement("BP-11", "BP-29", "BP-52")
def test_successful_retry_deposits_1_1_tokens(deployment: Deployment, client: Client, backoffs: list[float]) -> None:
    set_tokens(client, 10)
    fail(deployment, "insert", times=1)
    client.db.c.insert_one({})
    assert tokens_of(client) == pytest.approx(10.1)
    assert client.retry_stats()["retries"] == len(backoffs) == 1


@pytest.mark.requirement("BP-12", "BP-53")
def test_failed_first_attempt_deposits_no_token(client: Client) -> None:
    client.db.c.insert_one({"_id": 1})
    client.db.c.create_index("x", unique=True)
    set_tokens(client, 10)
    with pytest.raises(OperationFailure):
        client.db.command("nothing")
    assert tokens_of(client) == 10
    with pytest.raises(DuplicateKeyError):
        client.db.c.insert_one({"_id": 1})
    assert tokens_of(client) == 10


@pytest.mark.requirement("BP-55")
def test_each_client_has_own_token_bucket(deployment: Deployment, connect: Connect, backoffs: list[float]) -> None:
    empty, full = connect(deployment), connect(deployment)
    set_tokens(empty, 0)
    fail(deployment, "ping", times=2)
    with pytest.raises(OperationFailure):
        empty.db.command("ping")
    full.db.command("ping")
    assert tokens_of(full) == 1000
    assert len(deployment.commands.named("ping")) == 3
