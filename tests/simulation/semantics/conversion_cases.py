"""Dates across time zones, dates as strings, conversions, and what their operators refuse."""

from __future__ import annotations

import datetime

from bson import Decimal128, Int64, ObjectId, Timestamp

from .cases import Case, Error, evaluate

TRUNC = "server: jstests/aggregation/expressions/date_trunc.js"
DIFF = "server: jstests/aggregation/expressions/date_diff.js"
ADD = "server: jstests/aggregation/expressions/date_add_subtract.js"
TO_STRING = "server: jstests/aggregation/expressions/date_to_string.js"
FROM_STRING = "server: jstests/aggregation/expressions/date_from_string.js"
CONVERT = "server: jstests/aggregation/expressions/convert.js"
FIELD = "server: jstests/aggregation/expressions/expression_get_field.js"


def _date(text):
    return datetime.datetime.fromisoformat(text)


SOME = _date("2020-11-01T18:23:36")
MORNING = _date("2017-01-04T15:08:51.911")
OID = ObjectId("0123456789abcdef01234567")


def _rows(source, operator, *pairs):
    return [
        Case(f"{operator}: {operand!r}"[:170], [{"_id": 1}], evaluate({operator: operand}), expected, source)
        for operand, expected in pairs
    ]


CASES: list[Case] = [
    *_rows(
        TRUNC,
        "$dateTrunc",
        (
            {
                "date": _date("2021-12-01T18:23:36"),
                "unit": "hour",
                "binSize": 4,
                "timezone": "America/New_York",
                "startOfWeek": "IGNORED",
            },
            _date("2021-12-01T17:00:00"),
        ),
        (
            {
                "date": _date("2000-01-30T18:00:00"),
                "unit": "week",
                "binSize": 2,
                "timezone": "America/New_York",
                "startOfWeek": "mon",
            },
            _date("2000-01-17T05:00:00"),
        ),
        ({"date": ObjectId("507c7f79bcf86cd7994f6c0e"), "unit": "minute", "binSize": 10}, _date("2012-10-15T21:20:00")),
        ({"date": Timestamp(1350336377, 0), "unit": "second", "binSize": 10}, _date("2012-10-15T21:26:10")),
        ({"date": SOME}, Error(5439010)),
        ({"date": SOME, "unit": "century"}, Error(5439014)),
        ({"date": SOME, "unit": "hour", "binSize": 2.5}, Error(5439017)),
        ({"date": SOME, "unit": "week", "startOfWeek": "FRIDIE"}, Error(5439016)),
        ({"date": SOME, "unit": "hour", "timezone": None}, None),
    ),
    *_rows(
        DIFF,
        "$dateDiff",
        ({"startDate": SOME, "endDate": _date("2020-11-02T00:00:00"), "unit": "hour"}, Int64(6)),
        (
            {
                "startDate": _date("2021-01-17T05:00:00"),
                "endDate": _date("2021-01-17T04:59:00"),
                "unit": "week",
                "timezone": "America/New_York",
                "startOfWeek": "sunday",
            },
            Int64(-1),
        ),
        ({"startDate": "string", "endDate": SOME, "unit": "hour"}, Error(5166307)),
        ({"startDate": SOME, "endDate": SOME, "unit": "hour", "timezone": 1}, Error(40517)),
        ({"endDate": 1, "startDate": "$none", "unit": "century", "timezone": "INVALID"}, None),
    ),
    *_rows(
        ADD,
        "$dateAdd",
        (
            {"startDate": _date("2020-10-24T18:10:00"), "unit": "day", "amount": 1, "timezone": "Europe/Paris"},
            _date("2020-10-25T19:10:00"),
        ),
        (
            {"startDate": _date("2021-01-30T23:30:00"), "unit": "month", "amount": 1, "timezone": "Europe/Paris"},
            _date("2021-02-27T23:30:00"),
        ),
        ({"unit": "second", "amount": 120}, Error(5166402)),
        ({"startDate": SOME, "units": "day", "amount": 1}, Error(5166401)),
        ({"startDate": SOME, "unit": 1, "amount": 10}, Error(5166404)),
    ),
    *_rows(
        ADD,
        "$dateSubtract",
        (
            {"startDate": _date("2021-01-31T03:00:00"), "unit": "month", "amount": 2, "timezone": "America/New_York"},
            _date("2020-12-01T03:00:00"),
        ),
        ({"startDate": _date("2020-12-31T12:10:05"), "unit": "quarter", "amount": 2}, _date("2020-06-30T12:10:05")),
    ),
    *_rows(
        TO_STRING,
        "$dateToString",
        (
            {
                "format": "%Y-%m-%d %H:%M:%S %z (%Z minutes)",
                "date": _date("2017-07-04T14:56:42.911"),
                "timezone": "Asia/Kathmandu",
            },
            "2017-07-04 20:41:42 +0545 (345 minutes)",
        ),
        ({"format": "%b (%B) %d, %Y", "date": MORNING}, "Jan (January) 04, 2017"),
        ({"date": MORNING, "format": "$none"}, None),
        ({"date": MORNING, "format": "%"}, Error(18535)),
        ({"date": MORNING, "format": "%n"}, Error(18536)),
        ({"date": 42, "format": "%Y"}, Error(16006)),
    ),
    *_rows(
        FROM_STRING,
        "$dateFromString",
        ({"dateString": "2017-07-14T12:02:44.771 GMT+02:00"}, _date("2017-07-14T10:02:44.771")),
        ({"dateString": "2017-07-14T12:02:44.771+0330"}, _date("2017-07-14T08:32:44.771")),
        ({"dateString": "2017-07-14T12:02:44.771 PDT"}, _date("2017-07-14T19:02:44.771")),
        (
            {"dateString": "2017-07-04T11:56.02.8", "format": "%Y-%m-%dT%H:%M.%S.%L", "timezone": "Europe/London"},
            _date("2017-07-04T10:56:02.800"),
        ),
        ({"dateString": "1960-07-10T12:35:37.513", "timezone": "America/New_York"}, _date("1960-07-10T16:35:37.513")),
    ),
    *_rows(
        CONVERT,
        "$convert",
        ({"input": 1.9, "to": "date"}, _date("1970-01-01T00:00:00.001")),
        ({"input": OID, "to": "date"}, _date("1970-08-09T22:25:43")),
        ({"input": "", "to": "bool"}, True),
        ({"input": Decimal128("1.9"), "to": "string"}, "1.9"),
        ({"input": _date("1970-01-01T00:00:00.123"), "to": "string"}, "1970-01-01T00:00:00.123Z"),
        ({"input": "$none", "to": None, "onNull": "NULL"}, "NULL"),
        ({"input": 1, "to": "objectId", "onError": "$$REMOVE"}, "<missing>"),
    ),
    *_rows(
        FIELD,
        "$getField",
        ({"input": {"a": "b"}}, Error(3041702)),
        ({"field": "a", "input": {"a": "b"}, "unknown": True}, Error(3041701)),
        ({"field": "a.b", "input": {"$literal": {"a.b": "b"}}}, "b"),
        ({"field": "a", "input": True}, "<missing>"),
    ),
]
