"""The query operator ``$text``, for searches of plain English words."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from gmongo.testing.store.errors import bad_value, index_not_found
from gmongo.testing.store.paths import find_values
from gmongo.testing.unsupported import not_supported

# The English words that a server ignores in a text search.
_STOP_WORDS_TEXT = """a about above after again against all am an and any are as at be because been before being below
    between both but by cannot could did do does doing down during each few for from further had has have having he her
    here hers herself him himself his how i if in into is it its itself me more most my myself no nor not of off on once
    only or other ought our ours ourselves out over own same she should so some such than that the their theirs them
    themselves then there these they this those through to too under until up very was we were what when where which
    while who whom why with would you your yours yourself yourselves"""
_STOP_WORDS = frozenset(_STOP_WORDS_TEXT.split())
_PLAIN_TEXT_PATTERN = re.compile("[A-Za-z ]*")
_WORD_PATTERN = re.compile(r"\w+")
# A word equals its stem if the word ends with one of these letters, but not with "ism".
_FINAL_STEM_LETTERS = frozenset("abfhjkmopquvwxz")
_PLAIN_INDEX_OPTIONS = frozenset({"background", "weights", "default_language", "language_override", "textIndexVersion"})
# Words whose first two letters are not the first two letters of their stem.
_IRREGULAR_WORDS = frozenset({"dying", "lying", "tying"})
Score = Callable[[Any], float | None]


class TextSearch:
    """A compiled ``$text``."""

    def __init__(self, spec: Any, index_options: Mapping[str, Any] | None) -> None:
        search = spec.get("$search") if isinstance(spec, dict) and len(spec) == 1 else None
        if type(search) is not str or not _PLAIN_TEXT_PATTERN.fullmatch(search):
            raise not_supported("a text search beyond plain English words", repr(spec))
        if index_options is None:
            raise index_not_found("text index required for $text query")
        refused_options = {name for name, value in index_options.items() if value} - _PLAIN_INDEX_OPTIONS
        is_plain = index_options["default_language"] == "english" and set(index_options["weights"].values()) == {1}
        if refused_options or not is_plain or "$**" in index_options["weights"]:
            raise not_supported("a text search beyond plain English words", f"options of the index: {index_options}")
        self._paths = [path.split(".") for path in index_options["weights"]]
        self._words = {word for word in search.lower().split() if word not in _STOP_WORDS}
        for word in self._words:
            if word[-1] not in _FINAL_STEM_LETTERS or word.endswith("ism"):
                raise not_supported("a text search beyond plain English words", f"the stem of {word}")

    def score(self, document: Any) -> float | None:
        """Return the score of a document. Return None if the document contains no search word."""
        if "language" in document:
            raise not_supported("a text search beyond plain English words", "field language")
        values = [value for path in self._paths for value in find_values(document, path)]
        texts = [item for value in values for item in (value if isinstance(value, list) else [value])]
        scores = [score for text in texts if type(text) is str for score in self._scores(text)]
        return sum(scores) if scores else None

    def _scores(self, text: str) -> list[float]:
        """Return the scores of the search words that the text contains."""
        if "'" in text:
            raise not_supported("a text search beyond plain English words", "an apostrophe")
        words = [word for word in _WORD_PATTERN.findall(text.lower()) if word not in _STOP_WORDS]
        for word in self._words:
            if any(other != word and _may_share_stem(word, other) for other in words):
                raise not_supported("a text search beyond plain English words", f"the stem of {word}")
        counts = {word: words.count(word) for word in self._words if word in words}
        return [
            (2 - 0.5 ** (count - 1)) * (0.5 * count / len(words) + 0.5) * (1.1 if text.lower() == word else 1)
            for word, count in counts.items()
        ]


def _may_share_stem(word: str, other: str) -> bool:
    return word[0] == other[0] and (word[:2] == other[:2] or bool({word, other} & _IRREGULAR_WORDS))


def find_search(query: Any) -> Any:
    """Return the operand of ``$text`` in a query or in its ``$and`` clauses. Return None without ``$text``."""
    if not isinstance(query, dict):
        return None
    if "$text" in query:
        return query["$text"]
    clauses = query.get("$and")
    searches = [
        search for search in map(find_search, clauses if isinstance(clauses, list) else ()) if search is not None
    ]
    if len(searches) > 1:
        raise bad_value("Too many text expressions")
    return searches[0] if searches else None
