"""Wrong uses of gmongo, in which a type checker must find errors, and some correct uses."""

from __future__ import annotations

from typing import Any, TypedDict

from gmongo import DeleteOne, InsertOne, MongoClient, ReplaceOne, UpdateOne
from gmongo.collection import Collection
from gmongo.results import UpdateResult
from gmongo.write_concern import WriteConcern


class Movie(TypedDict):
    name: str
    year: int


def use_wrong_keys(client: MongoClient[Movie]) -> None:
    movie = client.shop.movies.find_one()
    if movie is not None:
        movie["nmae"]  # E: typeddict-item
    client.shop.movies.find_one()["name"]  # E: index


def use_wrong_documents(movies: Collection[Movie]) -> None:
    movies.insert_one({"name": "Metropolis", "year": 1927})
    movies.insert_one({"name": 5, "year": 1927})  # E: arg-type
    movies.insert_one({"name": "Metropolis"})  # E: arg-type
    movies.insert_many([{"name": "Metropolis", "year": "1927"}])  # E: list-item
    new = InsertOne({"name": "Metropolis", "year": 1927})
    movies.bulk_write([new, DeleteOne({})])  # E: list-item
    movies.bulk_write([InsertOne({"name": "Metropolis", "year": 1927}), DeleteOne({})])  # pyright: finds an error
    movies.bulk_write([UpdateOne({}, {"$set": {}})])
    movies.bulk_write([InsertOne(Movie(name="M", year=1931)), ReplaceOne({}, Movie(name="M", year=1931))])
    movies.bulk_write([{"insert": 1}])  # E: list-item


def use_wrong_arguments(movies: Collection[dict[str, Any]]) -> None:
    movies.find({}, skip="1")  # E: arg-type -- better: PyMongo accepts any value
    movies.find({}, skp=1)  # E: call-arg -- better: PyMongo accepts any value
    movies.find(filter="x")  # E: arg-type -- better: PyMongo accepts any value
    movies.find_one({}, sort=[("year", -1)], projection=["name"], max_time_ms=100)
    movies.find_one({}, sort=5)  # E: arg-type -- better: PyMongo accepts any value
    movies.find().sort("year", -1).sort([("year", 1), ("name", -1)]).sort({"year": 1})
    movies.find().hint("year_1").hint([("year", 1)])
    movies.update_one({}, {"$set": {"a": 1}}, upsrt=True)  # E: call-arg
    movies.update_one({}, "x")  # E: arg-type
    movies.with_options(write_concern=1)  # E: call-overload
    movies.find_one_and_update({}, {"$set": {}}, sort={"year": 1}, hint={"year": 1})
    movies.create_index([("year", 1), ("name", "text")], unique=True)
    movies.create_index(["year", ("name", -1)])
    movies.create_index({"year": 1})
    result: UpdateResult = movies.insert_one({})  # E: assignment
    concern = WriteConcern(w="majority", wtimeout="1")  # E: arg-type
    print(result, concern)
