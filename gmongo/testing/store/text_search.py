"""The query operator ``$text``, for searches of plain English words."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from gmongo.testing.store.errors import bad_value, index_not_found
from gmongo.testing.store.paths import values_at
from gmongo.testing.unsupported import not_supported

# The English words that a server ignores in a text search.
_STOP_WORDS = """a about above after again against all am an and any are as at be because been before being below
    between both but by cannot could did do does doing down during each few for from further had has have having he her
    here hers herself him himself his how i if in into is it its itself me more most my myself no nor not of off on once
    only or other ought our ours ourselves out over own same she should so some such than that the their theirs them
    themselves then there these they this those through to too under until up very was we were what when where which
    while who whom why with would you your yours yourself yourselves"""
_STOPPED = frozenset(_STOP_WORDS.split())
_PLAIN = re.compile("[A-Za-z ]*")
_WORD = re.compile(r"\w+")
# The last letters of words that equal their stem, except words that end with "ism".
_LETTERS_OF_STEMS = frozenset("abfhjkmopquvwxz")
_OF_PLAIN_INDEXES = frozenset({"weights", "default_language", "language_override", "textIndexVersion"})
# Words whose stem begins with other letters than the word.
_IRREGULAR = frozenset({"dying", "lying", "tying"})
Score = Callable[[Any], float | None]


class TextSearch:
    """A compiled ``$text``."""

    def __init__(self, spec: Any, index: Mapping[str, Any] | None) -> None:
        search = spec.get("$search") if isinstance(spec, dict) and len(spec) == 1 else None
        if type(search) is not str or not _PLAIN.fullmatch(search):
            raise not_supported("a text search beyond English words", repr(spec))
        if index is None:
            raise index_not_found("text index required for $text query")
        others = set(index) - _OF_PLAIN_INDEXES
        is_plain = index["default_language"] == "english" and set(index["weights"].values()) == {1}
        if others or not is_plain or "$**" in index["weights"]:
            raise not_supported("a text search beyond English words", "options of the text index")
        self._paths = [path.split(".") for path in index["weights"]]
        self._words = {word for word in search.lower().split() if word not in _STOPPED}
        for word in self._words:
            if word[-1] not in _LETTERS_OF_STEMS or word.endswith("ism"):
                raise not_supported("a text search beyond English words", f"the stem of {word}")

    def score(self, document: Any) -> float | None:
        """Return the score of a document. Return None if the document contains no search word."""
        if "language" in document:
            raise not_supported("a text search beyond English words", "field language")
        values = [value for path in self._paths for value in values_at(document, path)]
        texts = [part for value in values for part in (value if isinstance(value, list) else [value])]
        scores = [score for text in texts if type(text) is str for score in self._scores(text)]
        return sum(scores) if scores else None

    def _scores(self, text: str) -> list[float]:
        """Return the scores of the search words that the text contains."""
        if "'" in text:
            raise not_supported("a text search beyond English words", "an apostrophe")
        words = [word for word in _WORD.findall(text.lower()) if word not in _STOPPED]
        for word in self._words:
            if any(other != word and _may_share_stem(word, other) for other in words):
                raise not_supported("a text search beyond English words", f"the stem of {word}")
        counts = {word: words.count(word) for word in self._words if word in words}
        return [
            (2 - 0.5 ** (count - 1)) * (0.5 * count / len(words) + 0.5) * (1.1 if text.lower() == word else 1)
            for word, count in counts.items()
        ]


def _may_share_stem(word: str, other: str) -> bool:
    return word[0] == other[0] and (word[:2] == other[:2] or bool({word, other} & _IRREGULAR))


def search_in(query: Any) -> Any:
    """Return the operand of the ``$text`` of a query, which may be in an ``$and``, or None."""
    if not isinstance(query, dict):
        return None
    if "$text" in query:
        return query["$text"]
    parts = query.get("$and")
    found = [one for one in map(search_in, parts if isinstance(parts, list) else ()) if one is not None]
    if len(found) > 1:
        raise bad_value("Too many text expressions")
    return found[0] if found else None
