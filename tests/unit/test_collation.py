from __future__ import annotations

import pytest

from gmongo.collation import (
    Collation,
    CollationAlternate,
    CollationCaseFirst,
    CollationMaxVariable,
    CollationStrength,
    validate_collation_or_none,
)


def test_only_what_was_given_is_in_the_document():
    assert Collation("en").document == {"locale": "en"}
    assert Collation("en", caseLevel=False, strength=2).document == {
        "locale": "en",
        "caseLevel": False,
        "strength": 2,
    }


def test_all_parameters():
    everything = Collation(
        "fr_CA",
        caseLevel=True,
        caseFirst=CollationCaseFirst.UPPER,
        strength=CollationStrength.QUATERNARY,
        numericOrdering=True,
        alternate=CollationAlternate.SHIFTED,
        maxVariable=CollationMaxVariable.SPACE,
        normalization=True,
        backwards=True,
    )
    assert everything.document == {
        "locale": "fr_CA",
        "caseLevel": True,
        "caseFirst": "upper",
        "strength": 4,
        "numericOrdering": True,
        "alternate": "shifted",
        "maxVariable": "space",
        "normalization": True,
        "backwards": True,
    }


def test_the_document_is_a_copy():
    collation = Collation("en")
    collation.document["locale"] = "de"
    assert collation.document == {"locale": "en"}


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"locale": 1}, "locale"),
        ({"locale": "en", "caseLevel": 1}, "caseLevel"),
        ({"locale": "en", "caseFirst": True}, "caseFirst"),
        ({"locale": "en", "strength": "1"}, "strength"),
        ({"locale": "en", "strength": True}, "strength"),
        ({"locale": "en", "numericOrdering": "yes"}, "numericOrdering"),
        ({"locale": "en", "alternate": 1}, "alternate"),
        ({"locale": "en", "maxVariable": 1}, "maxVariable"),
        ({"locale": "en", "normalization": 0}, "normalization"),
        ({"locale": "en", "backwards": 0}, "backwards"),
    ],
)
def test_wrong_types_are_refused_by_name(options, name):
    with pytest.raises(TypeError, match=f"collation {name} must be"):
        Collation(**options)


def test_equality_hash_and_repr():
    assert Collation("en", strength=1) == Collation("en", strength=1)
    assert Collation("en") != Collation("de")
    assert Collation("en") != {"locale": "en"}
    assert len({Collation("en"), Collation("en"), Collation("de")}) == 2
    assert repr(Collation("en", strength=1)) == "Collation(locale='en', strength=1)"


def test_validate_collation_or_none():
    assert validate_collation_or_none(None) is None
    assert validate_collation_or_none(Collation("en")) == {"locale": "en"}
    assert validate_collation_or_none({"locale": "en"}) == {"locale": "en"}
    with pytest.raises(TypeError, match="'en'"):
        validate_collation_or_none("en")
