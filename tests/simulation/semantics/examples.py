"""Documents that several of the manual's examples have."""

from __future__ import annotations

from datetime import datetime

QUERY = "manual: reference/operator/query"
AGGREGATION = "manual: reference/operator/aggregation"
INVENTORY = [
    {"_id": 1, "item": "journal", "qty": 25, "size": {"h": 14, "w": 21, "uom": "cm"}, "status": "A"},
    {"_id": 2, "item": "notebook", "qty": 50, "size": {"h": 8.5, "w": 11, "uom": "in"}, "status": "A"},
    {"_id": 3, "item": "paper", "qty": 100, "size": {"h": 8.5, "w": 11, "uom": "in"}, "status": "D"},
    {"_id": 4, "item": "planner", "qty": 75, "size": {"h": 22.85, "w": 30, "uom": "cm"}, "status": "D"},
    {"_id": 5, "item": "postcard", "qty": 45, "size": {"h": 10, "w": 15.25, "uom": "cm"}, "status": "A"},
]
STOCK = [
    {"_id": 1, "item": "journal", "instock": [{"warehouse": "A", "qty": 5}, {"warehouse": "C", "qty": 15}]},
    {"_id": 2, "item": "notebook", "instock": [{"warehouse": "C", "qty": 5}]},
    {"_id": 3, "item": "paper", "instock": [{"warehouse": "A", "qty": 60}, {"warehouse": "B", "qty": 15}]},
    {"_id": 4, "item": "planner", "instock": [{"warehouse": "A", "qty": 40}, {"warehouse": "B", "qty": 5}]},
    {"_id": 5, "item": "postcard", "instock": [{"warehouse": "B", "qty": 15}, {"warehouse": "C", "qty": 35}]},
]
FRUIT = [
    {"_id": 1, "item": "apple", "type": "honey crisp", "price": 1.99},
    {"_id": 2, "item": "apple", "type": "fuji", "price": 1.99},
    {"_id": 3, "item": "apple", "type": "jonagold", "price": 1.29},
    {"_id": 4, "item": "apple", "type": "jonathan", "price": 1.29},
    {"_id": 5, "item": "apple", "type": "mcintosh", "price": 1.29},
    {"_id": 6, "item": "apple", "type": "cortland", "price": 1.29},
    {"_id": 7, "item": "orange", "type": "cara cara", "price": 2.99},
    {"_id": 8, "item": "orange", "type": "valencia", "price": 0.99},
    {"_id": 9, "item": "orange", "type": "satsuma", "price": 1.99},
    {"_id": 10, "item": "orange", "type": "navel", "price": 1.39},
]
CAKES = [
    {
        "_id": number,
        "type": kind,
        "orderDate": datetime(*date),
        "state": state,
        "price": price,
        "quantity": quantity,
    }
    for number, (kind, date, state, price, quantity) in enumerate(
        [
            ("chocolate", (2020, 5, 18, 14, 10, 30), "CA", 13, 120),
            ("chocolate", (2021, 3, 20, 11, 30, 5), "WA", 14, 140),
            ("vanilla", (2021, 1, 11, 6, 31, 15), "CA", 12, 145),
            ("vanilla", (2020, 2, 8, 13, 13, 23), "WA", 13, 104),
            ("strawberry", (2019, 5, 18, 16, 9, 1), "CA", 41, 162),
            ("strawberry", (2019, 1, 8, 6, 12, 3), "WA", 43, 134),
        ]
    )
]
SERIES = {"timeField": "timestamp", "metaField": "metadata", "granularity": "hours"}
