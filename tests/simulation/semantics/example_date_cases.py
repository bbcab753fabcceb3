"""The manual's examples of dates."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from .cases import Case, evaluate
from .examples import AGGREGATION, CAKES
from .refusals import ONE, UNPARSED, computed, each_value, location, plainly_piped

DELIVERED = [
    {"_id": 456, "purchased": datetime(2020, 12, 31), "delivered": datetime(2021, 1, 5)},
    {"_id": 457, "purchased": datetime(2021, 2, 28), "delivered": datetime(2021, 3, 7)},
    {"_id": 458, "purchased": datetime(2021, 2, 16), "delivered": datetime(2021, 2, 18)},
]
SUBSCRIBED = [
    {"_id": 456, "start": datetime(2010, 1, 1), "end": datetime(2011, 1, 1)},
    {"_id": 457, "start": datetime(2010, 1, 1), "end": datetime(2011, 7, 1)},
    {"_id": 458, "start": datetime(2010, 3, 1), "end": datetime(2010, 4, 30)},
]
SALE = [{"_id": 1, "date": datetime(2014, 1, 1, 8, 15, 39, 736000)}]
HIRED = [
    {"_id": 1, "at": datetime(1998, 11, 2)},
    {"_id": 2, "at": datetime(1998, 11, 7)},
    {"_id": 3, "at": datetime(2015, 12, 29)},
]
LOGGED = [
    {"_id": 1, "date": "2017-02-08T12:10:40.787"},
    {"_id": 2, "date": "20177-02-09"},
    {"_id": 3, "date": None},
]


def _shown(format: str, *zone: str) -> Any:
    return {"$dateToString": {"format": format, "date": "$date", **({"timezone": zone[0]} if zone else {})}}


CASES = [
    Case(
        "three days after a purchase",
        DELIVERED,
        each_value({"$dateAdd": {"startDate": "$purchased", "unit": "day", "amount": 3}}),
        [datetime(2021, 1, 3), datetime(2021, 3, 3), datetime(2021, 2, 19)],
        f"{AGGREGATION}/dateAdd",
    ),
    Case(
        "a month after the last day of October",
        ONE,
        evaluate({"$dateAdd": {"startDate": datetime(2020, 10, 31, 12, 10, 5), "unit": "month", "amount": 1}}),
        datetime(2020, 11, 30, 12, 10, 5),
        f"{AGGREGATION}/dateAdd",
    ),
    Case(
        "the average days of a delivery",
        DELIVERED,
        plainly_piped(
            {
                "$group": {
                    "_id": None,
                    "averageTime": {
                        "$avg": {"$dateDiff": {"startDate": "$purchased", "endDate": "$delivered", "unit": "day"}}
                    },
                }
            },
            {"$project": {"_id": 0, "numDays": {"$trunc": ["$averageTime", 1]}}},
        ),
        [{"numDays": 4.6}],
        f"{AGGREGATION}/dateDiff",
    ),
    Case(
        "years, months and days that begin between",
        SUBSCRIBED,
        each_value(
            [
                {"$dateDiff": {"startDate": "$start", "endDate": "$end", "unit": unit}}
                for unit in ("year", "month", "day")
            ]
        ),
        [[1, 12, 365], [1, 18, 546], [0, 1, 60]],
        f"{AGGREGATION}/dateDiff",
    ),
    Case(
        "a time with its offset, of places and as a number",
        SALE,
        evaluate(
            [
                _shown("%H:%M:%S:%L%z", "America/New_York"),
                _shown("%H:%M:%S:%L%z", "+04:30"),
                _shown("%Z", "America/New_York"),
            ]
        ),
        ["03:15:39:736-0500", "12:45:39:736+0430", "-300"],
        f"{AGGREGATION}/dateToString",
    ),
    Case(
        "the parts of a date",
        SALE,
        each_value(
            [
                {f"${part}": "$date"}
                for part in (
                    *("year", "month", "dayOfMonth", "hour", "minute", "second", "millisecond"),
                    *("dayOfYear", "dayOfWeek", "week"),
                )
            ]
        ),
        [[2014, 1, 1, 8, 15, 39, 736, 1, 4, 0]],
        f"{AGGREGATION}/millisecond",
    ),
    Case(
        "weeks, days and years by ISO",
        HIRED,
        each_value([{"$isoWeek": "$at"}, {"$isoDayOfWeek": "$at"}, {"$isoWeekYear": "$at"}]),
        [[45, 1, 1998], [45, 6, 1998], [53, 2, 2015]],
        f"{AGGREGATION}/isoWeek",
    ),
    Case(
        "a date from its parts, by weeks, and in a time zone",
        ONE,
        evaluate(
            [
                {"$dateFromParts": {"year": 2017, "month": 2, "day": 8, "hour": 12}},
                {"$dateFromParts": {"isoWeekYear": 2017, "isoWeek": 6, "isoDayOfWeek": 3, "hour": 12}},
                {
                    "$dateFromParts": {
                        **{"year": 2016, "month": 12, "day": 31, "hour": 23, "minute": 46, "second": 12},
                        "timezone": "America/New_York",
                    }
                },
            ]
        ),
        [datetime(2017, 2, 8, 12), datetime(2017, 2, 8, 12), datetime(2017, 1, 1, 4, 46, 12)],
        f"{AGGREGATION}/dateFromParts",
    ),
    Case(
        "what is no date is left as it is, and null is the beginning of time",
        LOGGED,
        each_value(
            {
                "$dateFromString": {
                    "dateString": "$date",
                    "timezone": "America/New_York",
                    "onError": "$date",
                    "onNull": datetime(1970, 1, 1),
                }
            }
        ),
        [datetime(2017, 2, 8, 17, 10, 40, 787000), "20177-02-09", datetime(1970, 1, 1)],
        f"{AGGREGATION}/dateFromString",
    ),
    Case(
        "quantities by half years",
        CAKES,
        plainly_piped(
            {
                "$group": {
                    "_id": {"$dateTrunc": {"date": "$orderDate", "unit": "month", "binSize": 6}},
                    "sumQuantity": {"$sum": "$quantity"},
                }
            },
            {"$sort": {"_id": 1}},
        ),
        [
            {"_id": datetime(2019, 1, 1), "sumQuantity": 296},
            {"_id": datetime(2020, 1, 1), "sumQuantity": 224},
            {"_id": datetime(2021, 1, 1), "sumQuantity": 285},
        ],
        f"{AGGREGATION}/dateTrunc",
    ),
    Case(
        "a date and the milliseconds of three days",
        SALE,
        evaluate({"$add": ["$date", 3 * 24 * 60 * 60000]}),
        datetime(2014, 1, 4, 8, 15, 39, 736000),
        f"{AGGREGATION}/add",
    ),
    Case(
        "a unit of time in the plural",
        SALE,
        computed({"$dateAdd": {"startDate": "$date", "unit": "days", "amount": 3}}),
        UNPARSED,
        "server: src/mongo/db/query/datetime/date_time_support.cpp",
    ),
    Case(
        "a year and a week by ISO",
        ONE,
        computed({"$dateFromParts": {"year": 2017, "isoWeek": 6}}),
        location(40489),
        "server: src/mongo/db/pipeline/expression.cpp",
    ),
    Case(
        "a format of dates that there is not",
        SALE,
        computed(_shown("%Q")),
        location(18536),
        "server: src/mongo/db/query/datetime/date_time_support.cpp",
    ),
]
