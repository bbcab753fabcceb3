"""Each option converts its accepted values, and rejects other values with an error that states the
rule.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from gmongo import errors
from gmongo.auth.credential import Credential
from gmongo.client_options import _check_mechanism_without_tls
from gmongo.errors import InvalidOption, InvalidOptionType
from gmongo.monitoring import CommandListener
from gmongo.options.table import OPTIONS, Option, find_option
from tests.support.cases import rows, with_cases

TYPE, VALUE = InvalidOptionType, InvalidOption
LISTENER = CommandListener()
TRACER_PROVIDER, METER_PROVIDER = SimpleNamespace(get_tracer=print), SimpleNamespace(get_meter=print)

# Each item is [accepted value], or [accepted value, converted value] if the option converts values.
Accepted = list[list[Any]]
# Each item contains the text of a rule, the error class, and the values that violate the rule.
Rejected = list[tuple[str, type, list[Any]]]


def observability_rules(provider: str, other_key: str, provider_object: Any) -> tuple[Accepted, Rejected]:
    names = ", ".join(each for each in ("enabled", other_key, provider) if each)
    method = f"get_{provider.partition('_')[0]}"
    good = [
        [value]
        for value in (None, {}, {"enabled": True}, {"enabled": None}, {provider: provider_object}, {provider: None})
    ]
    return good, [
        (f"a mapping with any of the keys {names}", TYPE, [5, "x", []]),
        (f"a mapping with no other keys than {names}", VALUE, [{"x": 1}, {"Enabled": True}]),
        ("a mapping whose enabled is True or False", TYPE, [{"enabled": 1}, {"enabled": "true"}]),
        (f"a mapping whose {provider} has the method {method}", TYPE, [{provider: 5}, {provider: SimpleNamespace()}]),
    ]


_TRACING_RULES, _METRICS_RULES = (
    observability_rules("tracer_provider", "query_text_max_length", TRACER_PROVIDER),
    observability_rules("meter_provider", "", METER_PROVIDER),
)
_LENGTH_KEY = "query_text_max_length"
RULES: dict[tuple[str, ...], tuple[Accepted, Rejected]] = {
    tuple(row["options"]): (
        row["accepted"],
        [(rule, getattr(errors, error_class), values) for rule, error_class, values in row["rejected"]],
    )
    for row in rows(__file__, "rules")
} | {
    ("event_listeners",): (
        [[[], []], [[LISTENER]], [(LISTENER,), [LISTENER]]],
        [("a list of event listeners", TYPE, [None, LISTENER, "x", {}]),
         ("a list that contains only event listeners", TYPE, [[5], [LISTENER, None]])],
    ),
    ("tracing",): (
        [*_TRACING_RULES[0], *([{_LENGTH_KEY: value}] for value in (0, 5, None))], [*_TRACING_RULES[1],
         (f"a mapping whose {_LENGTH_KEY} is an integer", TYPE, [{_LENGTH_KEY: each} for each in (True, "5", 1.0)]),
         (f"a mapping whose {_LENGTH_KEY} is 0 or above", VALUE, [{_LENGTH_KEY: -1}])],
    ),
    ("metrics",): ([*_METRICS_RULES[0], [True, {"enabled": True}], [False, {"enabled": False}]], _METRICS_RULES[1]),
}  # fmt: skip

OPTIONS_WITH_RULES = [(option, RULES[names]) for names in RULES for option in map(find_option, names)]


def option_name_or_empty(value: Any) -> str:
    return value.name if isinstance(value, Option) else ""


def test_table_of_option_rules_contains_every_option() -> None:
    names = [name for group in RULES for name in group]
    assert sorted(names) == sorted(option.name for option in OPTIONS)


@pytest.mark.filterwarnings("ignore:compressors")
@pytest.mark.parametrize(("option", "rules"), OPTIONS_WITH_RULES, ids=option_name_or_empty)
def test_option_converts_accepted_values(option: Option, rules: tuple[Accepted, Rejected]) -> None:
    for value, *converted in rules[0]:
        result, expected = option.check(value), converted[0] if converted else value
        assert result == expected and type(result) is type(expected), value


@pytest.mark.requirement("CMAP-07", "CMAP-09", "CMAP-10", "CMAP-13")
@pytest.mark.parametrize(("option", "rules"), OPTIONS_WITH_RULES, ids=option_name_or_empty)
def test_option_rejects_invalid_values_and_states_rule(option: Option, rules: tuple[Accepted, Rejected]) -> None:
    for rule, error_class, values in rules[1]:
        for value in values:
            with pytest.raises(error_class) as caught:
                option.check(value)
            assert type(caught.value) is error_class, value
            text = str(caught.value)
            assert text.startswith(f"{option.name} must be {rule}"), value
            rest = text.removeprefix(f"{option.name} must be {rule}")
            assert (rest == "") if option.secret else rest.startswith(", not "), value


@with_cases
def test_only_listed_options_have_attribute(attribute: str, value: Any, options: list[str]) -> None:
    assert {option.name for option in OPTIONS if getattr(option, attribute) == value} == set(options)


def test_option_is_found_by_alias_regardless_of_case() -> None:
    for alias, name in (("ssl", "tls"), ("max_adaptive_retries", "maxAdaptiveRetries"), ("wtimeout", "wTimeoutMS"),
                        ("j", "journal"), ("enable_overload_retargeting", "enableOverloadRetargeting")):  # fmt: skip
        assert find_option(alias) is find_option(name) is find_option(alias.upper())
    assert find_option("nosuch") is None


@pytest.mark.parametrize(
    ("mechanism", "secret"), [("PLAIN", "the password"), ("MONGODB-OIDC", "an access token"), ("SCRAM-SHA-256", None)]
)
def test_mechanism_that_sends_secret_without_tls_warns(mechanism: str, secret: str | None, recwarn: Any) -> None:
    credential = Credential(mechanism, "$external", "ann", "secret", {})
    _check_mechanism_without_tls(credential, [("localhost", 27017)])
    assert not recwarn.list
    _check_mechanism_without_tls(credential, [("localhost", 27017), ("db.example.com", 27017)])
    messages = [str(each.message) for each in recwarn.list]
    text = f"authMechanism {mechanism} without tls=true sends {secret} over the network in plain text"
    assert messages == ([] if secret is None else [text])
