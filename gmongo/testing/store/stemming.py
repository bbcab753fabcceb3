"""The stems of English words, as text indexes have them: the algorithm Porter2 of Snowball."""

from __future__ import annotations

import re
from functools import lru_cache

_VOWELS = "aeiouy"
_DOUBLES = ("bb", "dd", "ff", "gg", "mm", "nn", "pp", "rr", "tt")
_WHOLE = {
    "skis": "ski",
    "skies": "sky",
    "dying": "die",
    "lying": "lie",
    "tying": "tie",
    "idly": "idl",
    "gently": "gentl",
    "ugly": "ugli",
    "early": "earli",
    "only": "onli",
    "singly": "singl",
    **{word: word for word in ("sky", "news", "howe", "atlas", "cosmos", "bias", "andes")},
}
_KEPT = frozenset({"inning", "outing", "canning", "herring", "earring", "proceed", "exceed", "succeed"})
# The second step's endings, longest first, and what becomes of them.
_SECOND = (
    ("ational", "ate"), ("ization", "ize"), ("fulness", "ful"), ("iveness", "ive"), ("ousness", "ous"),
    ("biliti", "ble"), ("lessli", "less"), ("tional", "tion"), ("alism", "al"), ("aliti", "al"), ("ation", "ate"),
    ("entli", "ent"), ("fulli", "ful"), ("iviti", "ive"), ("ousli", "ous"), ("abli", "able"), ("alli", "al"),
    ("anci", "ance"), ("ator", "ate"), ("enci", "ence"), ("izer", "ize"), ("bli", "ble"), ("ogi", "og"), ("li", ""),
)  # fmt: skip
_THIRD = (
    ("ational", "ate"), ("tional", "tion"), ("alize", "al"), ("ative", ""), ("icate", "ic"), ("iciti", "ic"),
    ("ical", "ic"), ("ness", ""), ("ful", ""),
)  # fmt: skip
_FOURTH = ("ement", "ance", "ence", "able", "ible", "ment", "ant", "ent", "ism", "ate", "iti", "ous", "ive", "ize",
           "ion", "al", "er", "ic")  # fmt: skip
_REGION = re.compile("[aeiouy][^aeiouy]")
_PREFIXES = ("gener", "commun", "arsen")


@lru_cache(maxsize=4096)
def stem(word: str) -> str:
    """The stem of a word of lower case."""
    if len(word) < 3:
        return word
    if word in _WHOLE:
        return _WHOLE[word]
    word = _marked(word.removeprefix("'"))
    first, second = _regions(word)
    for ending in ("'s'", "'s", "'"):
        if word.endswith(ending):
            word = word[: -len(ending)]
            break
    word = _plural(word)
    if word not in _KEPT:
        word = _participle(word, first)
        if word[-1] in "yY" and len(word) > 2 and word[-2] not in _VOWELS:
            word = word[:-1] + "i"
        word = _derived(word, first)
        word = _diminished(word, first, second)
        word = _ending_cut(word, second)
        word = _last_cut(word, first, second)
    return word.replace("Y", "y")


def _marked(word: str) -> str:
    """The word with each ``y`` that is a consonant in upper case."""
    letters = list(word)
    for place, letter in enumerate(letters):
        if letter == "y" and (place == 0 or letters[place - 1] in _VOWELS):
            letters[place] = "Y"
    return "".join(letters)


def _regions(word: str) -> tuple[int, int]:
    """Where the two regions begin that endings are looked for in."""
    prefix = next((prefix for prefix in _PREFIXES if word.startswith(prefix)), None)
    first = _after_consonant(word, 0) if prefix is None else len(prefix)
    return first, _after_consonant(word, first)


def _after_consonant(word: str, start: int) -> int:
    found = _REGION.search(word, start)
    return len(word) if found is None else found.end()


def _has_vowel(part: str) -> bool:
    return any(letter in _VOWELS for letter in part)


def _is_short(word: str) -> bool:
    """Whether the word ends in a short syllable."""
    if len(word) == 2:
        return word[0] in _VOWELS and word[1] not in _VOWELS
    return len(word) > 2 and word[-1] not in _VOWELS + "wxY" and word[-2] in _VOWELS and word[-3] not in _VOWELS


def _plural(word: str) -> str:
    if word.endswith("sses"):
        return word[:-2]
    if word.endswith(("ied", "ies")):
        return word[:-2] if len(word) > 4 else word[:-1]
    if word.endswith("s") and not word.endswith(("us", "ss")) and _has_vowel(word[:-2]):
        return word[:-1]
    return word


def _participle(word: str, first: int) -> str:
    for ending in ("eedly", "ingly", "edly", "eed", "ing", "ed"):
        if word.endswith(ending):
            break
    else:
        return word
    rest = word[: -len(ending)]
    if ending.startswith("eed"):
        return rest + "ee" if len(rest) >= first else word
    if not _has_vowel(rest):
        return word
    if rest.endswith(("at", "bl", "iz")):
        return rest + "e"
    if rest.endswith(_DOUBLES):
        return rest[:-1]
    return rest + "e" if first >= len(rest) and _is_short(rest) else rest


def _derived(word: str, first: int) -> str:
    for ending, other in _SECOND:
        if not word.endswith(ending):
            continue
        rest = word[: -len(ending)]
        if len(rest) < first or (ending == "ogi" and not rest.endswith("l")):
            return word
        if ending == "li" and not rest.endswith(tuple("cdeghkmnrt")):
            return word
        return rest + other
    return word


def _diminished(word: str, first: int, second: int) -> str:
    for ending, other in _THIRD:
        if word.endswith(ending):
            rest = word[: -len(ending)]
            return rest + other if len(rest) >= (second if ending == "ative" else first) else word
    return word


def _ending_cut(word: str, second: int) -> str:
    for ending in _FOURTH:
        if word.endswith(ending):
            rest = word[: -len(ending)]
            fits = len(rest) >= second and (ending != "ion" or rest.endswith(("s", "t")))
            return rest if fits else word
    return word


def _last_cut(word: str, first: int, second: int) -> str:
    rest = word[:-1]
    if word.endswith("e") and (len(rest) >= second or (len(rest) >= first and not _is_short(rest))):
        return rest
    if word.endswith("ll") and len(rest) >= second:
        return rest
    return word
