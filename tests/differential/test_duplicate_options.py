"""Tests of options that have two values. The values come from a URI, its scheme, or keywords.

Each value can have its own spelling of the option's name.
"""

from __future__ import annotations

import itertools
import ssl
import warnings
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, NamedTuple

import pymongo
import pymongo.common
import pymongo.errors
import pytest

import gmongo
from gmongo.errors import ConfigurationError
from gmongo.options import srv
from gmongo.options.client_values import tls_enabled
from gmongo.options.table import OPTIONS, Option, Source, find_option
from tests.support.cases import rows

# Two values for each tested option. For a file, the value names an attribute of the fixture `files`.
VALUES: dict[str, tuple[Any, Any]] = {row["option"]: tuple(row["values"]) for row in rows(__file__) if "values" in row}
# Options that the tests omit: `connect`, which the tests set, the options of proxies, and options
# that need a second option or a mongodb+srv URI.
OMITTED_OPTIONS = {row["option"] for row in rows(__file__) if "values" not in row}
REJECTED = "refused"


@pytest.fixture(autouse=True)
def without_system_certificates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not load the system's certificate authorities, because loading is slow and no client
    connects.
    """
    monkeypatch.setattr(ssl.SSLContext, "set_default_verify_paths", lambda context: None)


def test_tables_of_double_options_contain_all_options() -> None:
    assert set(VALUES) | OMITTED_OPTIONS == {option.name for option in OPTIONS if option.source is Source.ANYWHERE}


class DoubleOption(NamedTuple):
    """An option with two values.

    :ivar places: Two letters, one for the place of each value: U for the URI, K for a keyword.
    :ivar names: For each value, the spelling of the option's name.
    """

    places: str
    names: tuple[str, str]
    values: tuple[Any, Any]

    @property
    def option(self) -> Option:
        option = find_option(self.names[0])
        assert option is not None
        return option

    def create_client(self, driver: Any, indexes: tuple[int, ...]) -> Any:
        """Create a client with the values whose indexes are in `indexes`.

        :raises Exception: The driver rejects the values.
        """
        pairs = [f"{self.names[n]}={_text(self.values[n])}" for n in indexes if self.places[n] == "U"]
        keywords = {self.names[n]: self.values[n] for n in indexes if self.places[n] == "K"}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return driver.MongoClient(f"mongodb://ann:x@h/?{'&'.join(pairs)}".rstrip("?"), connect=False, **keywords)

    def value(self, driver: Any, indexes: tuple[int, ...]) -> Any:
        """Return the option's value in a new client with the values at `indexes`, or REJECTED if the
        driver rejects the values.
        """
        try:
            client = self.create_client(driver, indexes)
        except (driver.errors.ConfigurationError, ValueError, TypeError):
            return REJECTED
        options = client.options.merged if driver is gmongo else client.options._options
        client.close()
        return options.get(self.option.key)

    def effects_of_values(self, driver: Any) -> Any:
        """Return, for each value, True if the value takes effect. Return REJECTED if the driver
        rejects the values.
        """
        both = self.value(driver, (0, 1))
        return both if both == REJECTED else (self.value(driver, (0,)) == both, self.value(driver, (1,)) == both)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def spellings(option: Option) -> list[str]:
    return list(dict.fromkeys((option.name, option.key, *option.aliases, *option.deprecated)))


def double_options(files: SimpleNamespace) -> Iterator[DoubleOption]:
    for name, values in VALUES.items():
        option = find_option(name)
        assert option is not None
        values = tuple(getattr(files, str(value), value) for value in values)
        for places, names in itertools.product(("UU", "UK", "KK"), itertools.product(spellings(option), repeat=2)):
            if places != "KK" or names[0] != names[1]:
                yield DoubleOption(places, names, values)
                yield DoubleOption(places, names, (values[1], values[0]))


ONLY_FIRST, ONLY_LAST = (True, False), (False, True)


def _disables_protection(double_option: DoubleOption, theirs: Any, ours: Any) -> bool:
    flag = double_option.option.insecure
    return (
        flag is not None
        and theirs == ONLY_LAST
        and ours == REJECTED
        and (double_option.places != "UK" or double_option.values[1] is flag)
    )


def _enables_protection(double_option: DoubleOption, theirs: Any, ours: Any) -> bool:
    flag = double_option.option.insecure
    return flag is not None and theirs == REJECTED and ours == ONLY_LAST and double_option.values[1] is not flag


DIFFERENCES: dict[str, Callable[[DoubleOption, Any, Any], bool]] = {
    "a later value does not disable protection": _disables_protection,
    "a keyword enables protection under another name": _enables_protection,
}


@pytest.mark.long
def test_effective_value_of_double_option_equals_value_in_pymongo(files: SimpleNamespace) -> None:
    reasons, failures = set(), []
    for double_option in double_options(files):
        if not all(name.lower() in pymongo.common.URI_OPTIONS_VALIDATOR_MAP for name in double_option.names):
            continue
        theirs, ours = (
            double_option.effects_of_values(pymongo),
            double_option.effects_of_values(gmongo),
        )
        reason = next(
            (text for text, explains in DIFFERENCES.items() if explains(double_option, theirs, ours)),
            None,
        )
        if theirs != ours and reason is None:
            failures.append((double_option, theirs, ours))
        reasons.add(reason)
    assert not failures
    assert reasons - {None} == set(DIFFERENCES)


def test_two_values_of_option_never_disable_protection(files: SimpleNamespace) -> None:
    flag_count = other_count = 0
    for double_option in double_options(files):
        flag, value = double_option.option.insecure, double_option.value(gmongo, (0, 1))
        if flag is not None:
            assert value == REJECTED or value is not flag, double_option
            flag_count += value != REJECTED
        elif double_option.option.protects:
            assert value, double_option
            other_count += value != REJECTED
    assert flag_count
    assert other_count


@pytest.mark.parametrize("name", [option.name for option in OPTIONS if option.protects and option.name in VALUES])
def test_keyword_none_does_not_disable_protection(files: SimpleNamespace, name: str) -> None:
    value = getattr(files, str(VALUES[name][0]), VALUES[name][0])
    double_option = DoubleOption("UK", (name, name), (value, None))
    assert double_option.value(gmongo, (0, 1)) in (double_option.value(gmongo, (0,)), REJECTED)


def test_several_uris_raise_configuration_error_in_both_drivers() -> None:
    for driver in (gmongo, pymongo):
        driver.MongoClient(["mongodb://a,b/?tls=true", "c"], connect=False).close()
        with pytest.raises(driver.errors.ConfigurationError, match=r"several URIs|multiple MongoDB URIs"):
            driver.MongoClient(["mongodb://a/?tls=true", "mongodb://b/?tls=false"], connect=False)


@pytest.mark.parametrize("keyword", ["tls", "ssl"])
def test_keyword_overrides_tls_of_scheme_but_not_of_uri(keyword: str, monkeypatch: pytest.MonkeyPatch) -> None:
    records = {"SRV": [("a.example.com", 27017)], "TXT": []}
    monkeypatch.setattr(srv, "lookup", lambda name, record_type, *_: srv.Answer(records[record_type], 60))
    options: Any = {keyword: False}
    assert tls_enabled(gmongo.MongoClient("mongodb+srv://example.com", connect=False).options.merged)
    assert not tls_enabled(gmongo.MongoClient("mongodb+srv://example.com", connect=False, **options).options.merged)
    with pytest.raises(ConfigurationError, match="must not override"):
        gmongo.MongoClient("mongodb+srv://example.com/?tls=true", connect=False, **options)
