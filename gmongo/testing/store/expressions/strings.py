"""The expression operators of strings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from gmongo.testing.command import CommandError
from gmongo.testing.store.errors import location
from gmongo.testing.store.expressions.arrays import bounds, integral
from gmongo.testing.store.expressions.compiling import Make
from gmongo.testing.store.expressions.operands import Fields, null_for_null, of_fields, of_iterator, of_values
from gmongo.testing.store.expressions.text import coerced
from gmongo.testing.store.patterns import compile_pattern, is_pattern
from gmongo.testing.store.values import MISSING, is_nan, is_number, type_name, whole

_TRIM = Fields({"input": 50695}, ("chars",), 50696, 50694)
_REPLACE = Fields({"input": 51749, "find": 51748, "replacement": 51747}, (), 51751, 51750)
_REGEX = Fields({"input": 31022, "regex": 31023}, ("options",), 51103, 31024)
# The characters that `$trim` removes by default.
_WHITESPACE = "\0\t\n\v\f\r \u00a0\u1680" + "".join(map(chr, range(0x2000, 0x200B)))
_UPPER = {letter: letter - 32 for letter in range(ord("a"), ord("z") + 1)}
_LOWER = {letter: letter + 32 for letter in range(ord("A"), ord("Z") + 1)}


def _is_null_or_missing(value: Any) -> bool:
    return value is None or value is MISSING


def _string(value: Any, code: int, argument: str) -> str:
    if type(value) is not str:
        raise location(code, f"{argument} must be a string, but is of type {type_name(value)}")
    return value


def _concatenated(values: Iterable[Any]) -> Any:
    found = []
    for value in values:
        if _is_null_or_missing(value):
            return None
        if type(value) is not str:
            raise location(16702, f"$concat only supports strings, not {type_name(value)}")
        found.append(value)
    return "".join(found)


def _lower(value: Any) -> str:
    return coerced(value).translate(_LOWER)


def _upper(value: Any) -> str:
    return coerced(value).translate(_UPPER)


def _compare_without_case(left: Any, right: Any) -> int:
    first, second = _upper(left), _upper(right)
    return (first > second) - (first < second)


def _substring_of_bytes(value: Any, start: Any, length: Any) -> str:
    for number, code, word in ((start, 16034, "starting index"), (length, 16035, "length")):
        if not is_number(number):
            raise location(code, f"$substrBytes: {word} must be a numeric type (is BSON type {type_name(number)})")
    text = coerced(value).encode()
    first = -1 if is_nan(start) else whole(start)
    if first < 0:
        raise location(50752, f"$substrBytes: starting index must be non-negative (got: {first})")
    last = len(text) if whole(length) < 0 else min(len(text), first + whole(length))
    if first >= len(text):
        return ""
    if _is_inside_character(text, first):
        raise location(28656, "$substrBytes: Invalid range, starting index is a UTF-8 continuation byte.")
    if _is_inside_character(text, last):
        raise location(28657, "$substrBytes: Invalid range, ending index is in the middle of a UTF-8 character.")
    return text[first:last].decode()


def _is_inside_character(text: bytes, place: int) -> bool:
    return place < len(text) and text[place] & 0xC0 == 0x80


def _substring_of_characters(value: Any, start: Any, length: Any) -> str:
    text = coerced(value)
    first = integral("$substrCP: starting index", start, 34450, 34451)
    count = integral("$substrCP: length", length, 34452, 34453)
    if count < 0:
        raise location(34454, "$substrCP: length must be a nonnegative integer.")
    if first < 0:
        raise location(34455, "$substrCP: the starting index must be nonnegative integer.")
    return text[first : first + count]


def _byte_length(value: Any) -> int:
    return len(_string(value, 34473, "$strLenBytes's argument").encode())


def _length(value: Any) -> int:
    return len(_string(value, 34471, "$strLenCP's argument"))


def _split(value: Any, separator: Any) -> list[str]:
    text = _string(value, 40085, "$split's first argument")
    by = _string(separator, 40086, "$split's second argument")
    if not by:
        raise location(40087, "$split requires a non-empty separator")
    return text.split(by)


def _index_operator(name: str, units: Callable[[str], Any], not_text: int, not_token: int) -> Make:
    def run(values: Iterator[Any]) -> Any:
        value = next(values)
        if _is_null_or_missing(value):
            return None
        text = units(_string(value, not_text, f"{name}'s first argument"))
        expected = units(_string(next(values), not_token, f"{name}'s second argument"))
        first, last = bounds(list(values), len(text))
        return text.find(expected, first, last) if first <= last else -1

    return of_iterator(run, 2, 4)


def _trim_operator(name: str, trim: Callable[[str, str], str]) -> Make:
    def run(input: Any, chars: Any = _WHITESPACE) -> Any:
        if _is_null_or_missing(input):
            return None
        text = _string(input, 50699, f"{name}'s input")
        if _is_null_or_missing(chars):
            return None
        return trim(text, _string(chars, 50700, f"{name}'s 'chars'"))

    return of_fields(_TRIM, run)


def _replace_operator(name: str, count: int) -> Make:
    def run(input: Any, find: Any, replacement: Any) -> Any:
        for value, code, word in ((input, 51746, "input"), (find, 51745, "find"), (replacement, 51744, "replacement")):
            if not _is_null_or_missing(value):
                _string(value, code, f"{name}'s '{word}'")
        if any(map(_is_null_or_missing, (input, find, replacement))):
            return None
        return input.replace(find, replacement, count)

    return of_fields(_REPLACE, run)


def _regex_operator(name: str, null_result: Callable[[], Any], run: Callable[[Any, str], Any]) -> Make:
    def function(input: Any, regex: Any, options: Any = None) -> Any:
        if not _is_null_or_missing(input):
            _string(input, 51104, f"{name}'s 'input'")
        pattern = _pattern(name, regex, None if options is MISSING else options)
        return null_result() if _is_null_or_missing(input) or pattern is None else run(pattern, input)

    return of_fields(_REGEX, function)


def _pattern(name: str, regex: Any, options: Any) -> Any:
    if options is not None and type(options) is not str:
        raise location(51106, f"{name} needs 'options' to be of type string")
    if _is_null_or_missing(regex):
        return None
    if not is_pattern(regex) and type(regex) is not str:
        raise location(51105, f"{name} needs 'regex' to be of type string or regex")
    if is_pattern(regex) and options is not None and int(regex.flags) & ~32:
        raise location(51107, f"{name}: found regex option(s) specified in both 'regex' and 'option' fields")
    try:
        return compile_pattern(regex, options)
    except CommandError as error:
        raise location(51111 if error.code == 51091 else error.code, error.message) from None


def _matches(pattern: Any, text: str) -> bool:
    return pattern.search(text) is not None


OPERATORS: Mapping[str, Make] = {
    "$concat": of_iterator(_concatenated),
    "$indexOfBytes": _index_operator("$indexOfBytes", str.encode, 40091, 40092),
    "$indexOfCP": _index_operator("$indexOfCP", str, 40093, 40094),
    "$ltrim": _trim_operator("$ltrim", str.lstrip),
    "$regexMatch": _regex_operator("$regexMatch", bool, _matches),
    "$replaceAll": _replace_operator("$replaceAll", -1),
    "$replaceOne": _replace_operator("$replaceOne", 1),
    "$rtrim": _trim_operator("$rtrim", str.rstrip),
    "$split": of_values(null_for_null(_split), 2),
    "$strLenBytes": of_values(_byte_length, 1),
    "$strLenCP": of_values(_length, 1),
    "$strcasecmp": of_values(_compare_without_case, 2),
    "$substr": of_values(_substring_of_bytes, 3),
    "$substrBytes": of_values(_substring_of_bytes, 3),
    "$substrCP": of_values(_substring_of_characters, 3),
    "$toLower": of_values(_lower, 1),
    "$toUpper": of_values(_upper, 1),
    "$trim": _trim_operator("$trim", str.strip),
}
