"""Expressions of strings."""

from __future__ import annotations

from bson import Regex

from .cases import Error
from .expressions import rows

CASES = [
    *rows("$concat", (["no-", "$n"], Error(16702)), (["a", None], None), (["a", "b"], "ab"), ([], "")),
    *rows("$toLower", ("$none", ""), ("$z", ""), ("ÉA", "Éa"), (5, "5"), ("$d", "2020-01-01t00:00:00.000z")),
    *rows("$toUpper", ("$none", ""), ("éa", "éA"), (True, Error(16007))),
    *rows(
        "$substr",
        (["$s", 1, 2], "é"),
        (["$none", 0, 1], ""),
        (["$s", 2, 1], Error(28656)),
        (["$s", 0, 2], Error(28657)),
        (["$s", 3, -1], "llo"),
        (["$n", 0, 1], "5"),
    ),
    *rows("$substrBytes", (["$s", "x", 1], Error(16034)), (["$s", -1, 1], Error(50752))),
    *rows("$substrCP", (["$s", 1, 2], "él"), (["$s", 0, -1], Error(34454)), (["$s", 9, 1], "")),
    *rows("$strLenCP", ("$s", 5), ("$none", Error(34471))),
    *rows("$strLenBytes", ("$s", 6), (None, Error(34473))),
    *rows("$strcasecmp", (["a", "B"], -1), (["a", "A"], 0)),
    *rows(
        "$split",
        (["June-15-2013", "-"], ["June", "15", "2013"]),
        (["a", "-"], ["a"]),
        ([None, "-"], None),
        (["a", ""], Error(40087)),
        (["a", 7], Error(40086)),
    ),
    *rows(
        "$indexOfBytes",
        (["cafeteria", "e"], 3),
        (["cafétéria", "é"], 3),
        (["cafétéria", "t"], 5),
        ([None, "foo"], None),
        (["foo", "o", 1, 1], -1),
        (["foo", "o", 3, 5], -1),
    ),
    *rows(
        "$indexOfCP",
        (["cafétéria", "t"], 4),
        (["vanilla", "ll", 12], -1),
        (["vanilla", "ll", -1], Error(40097)),
        (["a", 1], Error(40094)),
    ),
    *rows(
        "$trim",
        ({"input": " \n good  bye \t  "}, "good  bye"),
        ({"input": " ggggoodbyeeeee", "chars": "ge"}, " ggggoodby"),
        ({"input": None}, None),
        ({"input": 1}, Error(50699)),
        ({"chars": "x"}, Error(50695)),
    ),
    *rows("$ltrim", ({"input": " x "}, "x ")),
    *rows("$rtrim", ({"input": " x "}, " x")),
    *rows(
        "$replaceOne",
        ({"input": "abc abc", "find": "abc", "replacement": "x"}, "x abc"),
        ({"input": None, "find": "a", "replacement": "b"}, None),
        ({"input": 1, "find": "a", "replacement": "b"}, Error(51746)),
    ),
    *rows("$replaceAll", ({"input": "abc abc", "find": "abc", "replacement": "x"}, "x x")),
    *rows(
        "$regexMatch",
        ({"input": "$s", "regex": "^h"}, True),
        ({"input": "$none", "regex": "^h"}, False),
        ({"input": 1, "regex": "h"}, Error(51104)),
        ({"input": "A", "regex": "a", "options": "i"}, True),
    ),
    *rows(
        "$regexFind",
        ({"input": "héllo", "regex": "(l)(x)?"}, {"match": "l", "idx": 2, "captures": ["l", None]}),
        ({"input": "a", "regex": "b"}, None),
    ),
    *rows(
        "$regexFindAll",
        (
            {"input": "abcab", "regex": Regex("(a)b")},
            [{"match": "ab", "idx": 0, "captures": ["a"]}, {"match": "ab", "idx": 3, "captures": ["a"]}],
        ),
        ({"input": None, "regex": "a"}, []),
    ),
]
