"""Expressions of dates, and expressions that are never evaluated."""

from __future__ import annotations

from datetime import datetime as D
from typing import Any

from bson import Int64, Timestamp

from .cases import Case, Error, aggregate
from .expressions import RICH, rows


def _date(name: str, operand: Any, expected: Any) -> Case:
    (case,) = rows(name, (operand, expected))
    return case


MARCH = D(2021, 3, 20, 11, 30, 5)
CASES = [
    _date("$hour", {"date": "$d", "timezone": "+05:30"}, 5),
    _date("$minute", {"date": "$d", "timezone": "+0530"}, 30),
    _date("$hour", {"date": "$d", "timezone": "Nope"}, Error(40485)),
    _date("$hour", {"date": D(2020, 7, 1, 12), "timezone": "America/New_York"}, 8),
    _date("$hour", {"date": "$d", "timezone": None}, None),
    *(_date(name, "$z", None) for name in ("$year", "$week", "$isoWeek", "$hour", "$dayOfWeek")),
    *(_date(name, "$none", None) for name in ("$year", "$week", "$millisecond")),
    _date("$year", "x", Error(16006)),
    _date("$year", {"nope": 1}, Error(40535)),
    _date("$dayOfWeek", "$d", 4),
    _date("$dayOfYear", "$d", 1),
    _date("$week", "$d", 0),
    _date("$isoWeek", "$d", 1),
    _date("$isoWeekYear", D(2021, 1, 1), Int64(2020)),
    _date("$isoDayOfWeek", "$d", 3),
    _date("$month", Timestamp(0, 1), 1),
    _date("$dateToString", {"date": "$z"}, None),
    _date("$dateToString", {"date": "$z", "onNull": "never"}, "never"),
    _date("$dateToString", {"date": "$d"}, "2020-01-01T00:00:00.000Z"),
    _date(
        "$dateToString",
        {"date": "$d", "format": "%Y-%m-%d %H:%M:%S.%L %j %w %u %G %V %U %%"},
        "2020-01-01 00:00:00.000 001 4 3 2020 01 00 %",
    ),
    _date("$dateToString", {"date": "$d", "format": "%H:%M %z %Z", "timezone": "+05:30"}, "05:30 +0530 330"),
    *(_date("$dateToString", {"date": "$d", "format": form}, Error(18536)) for form in ("%a", "%y", "%p", "%I")),
    _date("$dateToString", {"format": "%Y"}, Error(18628)),
    _date("$dateFromString", {"dateString": "2017-02-08T12:10:40.787"}, D(2017, 2, 8, 12, 10, 40, 787000)),
    _date(
        "$dateFromString",
        {"dateString": "2017-02-08T12:10:40.787", "timezone": "America/New_York"},
        D(2017, 2, 8, 17, 10, 40, 787000),
    ),
    _date("$dateFromString", {"dateString": "2017-02-08T12:10:40.787Z", "timezone": "America/New_York"}, Error(241)),
    _date("$dateFromString", {"dateString": "06-15-2018", "format": "%m-%d-%Y"}, D(2018, 6, 15)),
    _date("$dateFromString", {"dateString": "20177-07-09", "onError": "bad"}, "bad"),
    _date("$dateFromString", {"dateString": "20177-02-09T03:35:02.055", "onError": "bad"}, "bad"),
    _date("$dateFromString", {"dateString": "2017-2-8"}, D(2017, 2, 8)),
    _date("$dateFromString", {"dateString": None, "onNull": 5}, 5),
    _date("$dateFromString", {"dateString": 5}, Error(241)),
    _date("$dateFromParts", {"year": 2017, "month": 2, "day": 8, "hour": 12}, D(2017, 2, 8, 12)),
    _date("$dateFromParts", {"year": 2017, "month": 14, "day": 1, "hour": 12}, D(2018, 2, 1, 12)),
    _date("$dateFromParts", {"year": 2017, "month": 0}, D(2016, 12, 1)),
    _date("$dateFromParts", {"isoWeekYear": 2017, "isoWeek": 6, "isoDayOfWeek": 3, "hour": 12}, D(2017, 2, 8, 12)),
    _date("$dateFromParts", {"month": 1}, Error(40516)),
    _date("$dateFromParts", {"year": None}, None),
    _date(
        "$dateToParts",
        {"date": MARCH},
        {"year": 2021, "month": 3, "day": 20, "hour": 11, "minute": 30, "second": 5, "millisecond": 0},
    ),
    _date(
        "$dateToParts",
        {"date": MARCH, "iso8601": True},
        {
            "isoWeekYear": 2021,
            "isoWeek": 11,
            "isoDayOfWeek": 6,
            "hour": 11,
            "minute": 30,
            "second": 5,
            "millisecond": 0,
        },
    ),
    _date(
        "$dateAdd", {"startDate": D(2020, 10, 31, 12, 10, 5), "unit": "month", "amount": 1}, D(2020, 11, 30, 12, 10, 5)
    ),
    _date("$dateAdd", {"startDate": D(2020, 12, 31), "unit": "month", "amount": 2}, D(2021, 2, 28)),
    _date(
        "$dateAdd",
        {"startDate": D(2021, 3, 13, 12), "unit": "day", "amount": 1, "timezone": "America/New_York"},
        D(2021, 3, 14, 11),
    ),
    _date(
        "$dateAdd",
        {"startDate": D(2021, 3, 13, 12), "unit": "hour", "amount": 24, "timezone": "America/New_York"},
        D(2021, 3, 14, 12),
    ),
    _date("$dateAdd", {"startDate": "$d", "unit": "moon", "amount": 1}, Error(9)),
    _date("$dateAdd", {"startDate": "$d", "unit": "day", "amount": 1.5}, Error(5166405)),
    _date("$dateAdd", {"startDate": "$z", "unit": "day", "amount": 1}, None),
    _date("$dateSubtract", {"startDate": D(2021, 3, 31), "unit": "month", "amount": 1}, D(2021, 2, 28)),
    _date("$dateSubtract", {"startDate": "x", "unit": "day", "amount": 1}, Error(5166403)),
    _date("$dateDiff", {"startDate": D(2021, 1, 31), "endDate": D(2021, 2, 1), "unit": "month"}, Int64(1)),
    _date("$dateDiff", {"startDate": D(2020, 12, 31, 23, 59), "endDate": D(2021, 1, 1), "unit": "year"}, Int64(1)),
    _date("$dateDiff", {"startDate": D(2021, 1, 24), "endDate": D(2021, 1, 25), "unit": "week"}, Int64(0)),
    _date(
        "$dateDiff",
        {"startDate": D(2021, 1, 24), "endDate": D(2021, 1, 25), "unit": "week", "startOfWeek": "monday"},
        Int64(1),
    ),
    _date("$dateDiff", {"startDate": D(2021, 1, 1, 10, 59), "endDate": D(2021, 1, 1, 11, 1), "unit": "hour"}, Int64(1)),
    _date("$dateTrunc", {"date": MARCH, "unit": "month"}, D(2021, 3, 1)),
    _date("$dateTrunc", {"date": MARCH, "unit": "week"}, D(2021, 3, 14)),
    _date("$dateTrunc", {"date": MARCH, "unit": "week", "startOfWeek": "Monday"}, D(2021, 3, 15)),
    _date("$dateTrunc", {"date": MARCH, "unit": "hour", "binSize": 2}, D(2021, 3, 20, 10)),
    _date("$dateTrunc", {"date": MARCH, "unit": "month", "binSize": 6}, D(2021, 1, 1)),
    _date("$dateTrunc", {"date": MARCH, "unit": "day", "timezone": "America/Los_Angeles"}, D(2021, 3, 20, 7)),
    _date("$dateTrunc", {"date": MARCH, "unit": "day", "binSize": 0}, Error(5439018)),
    Case(
        "an unknown operator with nothing to evaluate",
        [RICH],
        aggregate({"$match": {"_id": 2}}, {"$project": {"x": {"$nope": 1}}}),
        Error(31325),
        "server: src/mongo/db/query/projection_parser.cpp",
    ),
    Case(
        "a wrong number of arguments with nothing to evaluate",
        [],
        aggregate({"$project": {"x": {"$divide": [1]}}}),
        Error(16020),
        "server: src/mongo/db/pipeline/expression.cpp",
    ),
    Case(
        "an unknown variable with nothing to evaluate",
        [],
        aggregate({"$match": {"$expr": "$$nope"}}),
        Error(17276),
        "server: src/mongo/db/pipeline/variables.cpp",
    ),
]
