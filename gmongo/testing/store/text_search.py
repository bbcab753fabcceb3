"""``$text``: the words and phrases that a search asks for, and how well a document fits them."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from gmongo.testing.command import CommandError, not_supported
from gmongo.testing.store.errors import bad_value, index_not_found, type_mismatch
from gmongo.testing.store.operators import is_operators
from gmongo.testing.store.paths import split, values_at
from gmongo.testing.store.stemming import stem
from gmongo.testing.store.text_specs import language_of
from gmongo.testing.store.values import is_true, type_name

# Words that say too little to be searched for.
_STOP_WORDS = """a about above after again against all am an and any are aren't as at be because been before being below
    between both but by can't cannot could couldn't did didn't do does doesn't doing don't down during each few for from
    further had hadn't has hasn't have haven't having he he'd he'll he's her here here's hers herself him himself his
    how how's i i'd i'll i'm i've if in into is isn't it it's its itself let's me more most mustn't my myself no nor not
    of off on once only or other ought our ours ourselves out over own same shan't she she'd she'll she's should
    shouldn't so some such than that that's the their theirs them themselves then there there's these they they'd
    they'll they're they've this those through to too under until up very was wasn't we we'd we'll we're we've were
    weren't what what's when when's where where's which while who who's whom why why's with won't would wouldn't you
    you'd you'll you're you've your yours yourself yourselves"""
_STOPPED = frozenset(_STOP_WORDS.split())
Score = Callable[[Any], float | None]
_OPTIONS = {"$search": str, "$language": str, "$caseSensitive": bool, "$diacriticSensitive": bool}
# A letter may be followed by its marks.
_WORD = re.compile(r"[\w'\u0300-\u036f]+")
_ASKED = re.compile(r'"|-|[^\s"-]+')


@dataclass
class Asked:
    """What a search string asks for.

    :param words: one of them at least has to be there.
    :param phrases: all have to be there.
    """

    words: set[str] = field(default_factory=set)
    phrases: list[str] = field(default_factory=list)
    without_words: set[str] = field(default_factory=set)
    without_phrases: list[str] = field(default_factory=list)


class TextSearch:
    """A ``$text`` condition, for the documents of a text index.

    :param index: the options of the index.
    :raises CommandError: if the condition is malformed, or in a language that is not known.
    """

    def __init__(self, spec: Any, index: Mapping[str, Any] | None) -> None:
        _check(spec)
        if index is None:
            raise index_not_found("text index required for $text query")
        self._override = index["language_override"]
        self._language = language_of(spec.get("$language", index["default_language"])) or ""
        for name in {self._language, language_of(index["default_language"]) or ""}:
            _check_known(name)
        self._index_language = language_of(index["default_language"]) or ""
        self._weights: Mapping[str, Any] = index["weights"]
        self._case = bool(spec.get("$caseSensitive"))
        self._marks = bool(spec.get("$diacriticSensitive"))
        self._asked = self._parsed(spec["$search"])

    def score(self, document: Any) -> float | None:
        """How well the document fits; None if it does not."""
        texts = list(self._texts(document))
        scores: Counter[str] = Counter()
        exact: set[str] = set()
        for text, weight in texts:
            scores.update(_scores(text, weight, self._index_language))
            exact.update(word for word, _ in self._stems(text, self._index_language))
        asked, folded = self._asked, [self._folded(text) for text, _ in texts]
        if not asked.words & exact or asked.without_words & exact:
            return None
        if not all(any(phrase in text for text in folded) for phrase in asked.phrases):
            return None
        if any(phrase in text for text in folded for phrase in asked.without_phrases):
            return None
        return float(sum(scores[word] for word in {_plain(word) for word in asked.words}))

    def _folded(self, text: str) -> str:
        return _without_marks(text if self._case else text.lower(), keep=self._marks)

    def _stems(self, text: str, language: str) -> Iterator[tuple[str, str]]:
        """The words that count, as the search compares them, and as the index keeps them."""
        for word in _words(text, language):
            found = word if self._case else word.lower()
            stemmed = stem(found) if language == "english" else found
            yield _without_marks(stemmed, keep=self._marks), _plain(stemmed)

    def _texts(self, document: Any) -> Iterator[tuple[str, int]]:
        """The texts of the document that the index has, with their weights."""
        _check_language(document, self._override, self._index_language)
        for path, weight in self._weights.items():
            if path == "$**":
                yield from ((text, weight) for text in _all_texts(document, self._weights, ""))
                continue
            for value in values_at(document, split(path)):
                for one in value if isinstance(value, list) else [value]:
                    if type(one) is str:
                        yield one, weight

    def _parsed(self, search: str) -> Asked:
        asked, without, phrase_start, last_end = Asked(), False, None, 0
        for token in _ASKED.finditer(search):
            spaced = token.start() == 0 or token.start() > last_end
            last_end = token.end()
            if token[0] == '"':
                if phrase_start is None:
                    without, phrase_start = without and not spaced, token.end()
                else:
                    phrases = asked.without_phrases if without else asked.phrases
                    phrases.append(self._folded(search[phrase_start : token.start()]))
                    phrase_start = None
            elif token[0] == "-":
                without = without or (phrase_start is None and spaced)
            elif not (phrase_start is not None and without):
                without = without and not spaced
                words = asked.without_words if without else asked.words
                words.update(word for word, _ in self._stems(token[0], self._language))
        return asked


def _check(spec: Any) -> None:
    if not isinstance(spec, dict):
        raise bad_value("$text expects an object")
    if "$search" not in spec:
        raise CommandError(4, "NoSuchKey", 'Missing expected field "$search"')
    for name, value in spec.items():
        if name not in _OPTIONS:
            raise bad_value("extra fields in $text")
        if not isinstance(value, _OPTIONS[name]):
            raise type_mismatch(f"\"{name}\" had the wrong type. Expected {_OPTIONS[name].__name__}, found "
                                f"{type_name(value)}")  # fmt: skip
    if language_of(spec.get("$language", "none")) is None:
        raise bad_value(f'unsupported language: "{spec["$language"]}" for text index version 3')


def _check_known(language: str) -> None:
    if language not in ("english", "none"):
        raise not_supported(f"a text search in the language {language}")


def _check_language(document: Any, override: str, language: str) -> None:
    """Refuse a document whose texts are in another language than the index says."""
    for part in document.values() if isinstance(document, dict) else document:
        if isinstance(part, (dict, list)):
            _check_language(part, override, language)
    own = document.get(override) if isinstance(document, dict) else None
    if isinstance(own, str) and language_of(own) != language:
        raise not_supported(f"a text index of documents in the language {own}")


def _words(text: str, language: str) -> Iterator[str]:
    for found in _WORD.findall(text):
        word = found if language == "english" else found.replace("'", " ")
        for part in word.split():
            if language != "english" or part.lower() not in _STOPPED:
                yield part


def _scores(text: str, weight: float, language: str) -> Mapping[str, float]:
    """The score of each word of a text: more for a frequent word, and for one that is the whole text."""
    stems = [_plain(stem(word.lower()) if language == "english" else word) for word in _words(text, language)]
    return {
        word: weight
        * sum(0.5**place for place in range(count))
        * (0.5 * count / len(stems) + 0.5)
        * (1.1 if text.lower() == word else 1)
        for word, count in Counter(stems).items()
    }


def _all_texts(value: Any, weights: Mapping[str, Any], path: str) -> Iterator[str]:
    """All texts in a document but those of fields with weights of their own."""
    if isinstance(value, dict):
        for name, part in value.items():
            inner = f"{path}.{name}" if path else name
            if inner not in weights:
                yield from _all_texts(part, weights, inner)
    elif isinstance(value, list):
        for part in value:
            yield from _all_texts(part, weights, path)
    elif type(value) is str:
        yield value


def _plain(word: str) -> str:
    return _without_marks(word.lower(), keep=False)


def _without_marks(text: str, *, keep: bool) -> str:
    if keep or text.isascii():
        return text
    return "".join(letter for letter in unicodedata.normalize("NFD", text) if unicodedata.category(letter) != "Mn")


def search_in(query: Any) -> Any:
    """The operand of the ``$text`` that all documents of a query fit; None without one."""
    if not isinstance(query, dict):
        return None
    if "$text" in query:
        return query["$text"]
    parts = query.get("$and")
    found = map(search_in, parts) if isinstance(parts, list) else ()
    return next((one for one in found if one is not None), None)


def check_prefix(query: Mapping[str, Any], keys: Mapping[str, Any]) -> None:
    """Check that a query says what the fields before the text are equal to.

    :raises CommandError: 291, if it does not.
    """
    for path in list(keys)[: list(keys).index("_fts")]:
        condition = query.get(path, {"$gt": None})
        if is_operators(condition) and not is_true("$eq" in condition):
            raise CommandError(291, "NoQueryExecutionPlans", "failed to use text index to satisfy $text query (if text "
                               "index is compound, are equality predicates given for all prefix fields?)")  # fmt: skip
