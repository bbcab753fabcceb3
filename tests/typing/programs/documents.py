"""The document type of a client is also the document type of its databases, collections and
results.
"""

from __future__ import annotations

from typing import Any, TypedDict

from bson.codec_options import CodecOptions
from bson.dbref import DBRef
from bson.raw_bson import RawBSONDocument
from typing_extensions import assert_type

from gmongo import MongoClient
from gmongo.collection import Collection
from gmongo.cursor import Cursor
from gmongo.database import Database

RAW: CodecOptions[RawBSONDocument] = CodecOptions(document_class=RawBSONDocument)


class Movie(TypedDict):
    name: str
    year: int


def use_document_type_of_client(client: MongoClient[Movie]) -> None:
    assert_type(client["shop"], Database[Movie])
    assert_type(client.shop, Database[Movie])
    assert_type(client.shop.movies, Collection[Movie])
    assert_type(client["shop"]["movies"], Collection[Movie])
    assert_type(client.shop.movies.old, Collection[Movie])
    assert_type(client.get_database("shop"), Database[Movie])
    assert_type(client.get_default_database(), Database[Movie])
    assert_type(client.shop.client, MongoClient[Movie])
    assert_type(client.shop.movies.database, Database[Movie])


def use_document_type_of_codec_options(client: MongoClient[Movie]) -> None:
    assert_type(client.get_database("shop", codec_options=RAW), Database[RawBSONDocument])  # better: PyMongo uses Movie
    assert_type(client.get_database("shop", RAW), Database[RawBSONDocument])  # better: PyMongo uses Movie
    assert_type(client.get_default_database("shop", RAW), Database[RawBSONDocument])  # better: PyMongo uses Movie
    assert_type(client.shop.with_options(RAW), Database[RawBSONDocument])
    assert_type(client.shop.get_collection("movies", RAW), Collection[RawBSONDocument])  # better: PyMongo uses Movie
    assert_type(client.shop.create_collection("movies", RAW), Collection[RawBSONDocument])  # better: PyMongo uses Movie
    assert_type(client.shop.movies.with_options(codec_options=RAW), Collection[RawBSONDocument])
    assert_type(client.shop.movies.with_options(), Collection[Movie])


def read_results_of_collection(movies: Collection[Movie]) -> None:
    assert_type(movies.find_one(), Movie | None)
    assert_type(movies.find(), Cursor[Movie])
    assert_type(movies.find().sort("year").limit(2), Cursor[Movie])
    assert_type(movies.find().clone(), Cursor[Movie])
    assert_type(movies.find()[0], Movie)
    assert_type(movies.find()[1:3], Cursor[Movie])
    assert_type(movies.find().to_list(), list[Movie])
    assert_type(next(movies.find()), Movie)
    assert_type(movies.find_one_and_delete({}), Movie | None)
    assert_type(movies.find_one_and_update({}, {"$inc": {"year": 1}}), Movie | None)
    assert_type(movies.aggregate([]).to_list(), list[Movie])
    for batch in movies.find_raw_batches():
        assert_type(batch, bytes)  # better: PyMongo declares a document, not bytes
    with movies.watch() as stream:
        assert_type(next(stream), Movie)


def read_results_of_database(database: Database[Movie]) -> None:
    assert_type(database.command("ping"), dict[str, Any])
    assert_type(database.command("ping", codec_options=RAW), RawBSONDocument)
    assert_type(database.dereference(DBRef("movies", 1)), Movie | None)
    assert_type(database.cursor_command("find", "movies").to_list(), list[Movie])
    assert_type(database.aggregate([]).to_list(), list[Movie])
    assert_type(database.list_collection_names(), list[str])


def use_client_without_type_argument(client: MongoClient) -> None:  # E: type-arg
    movies: Collection[Movie] = client.shop.movies
    assert_type(movies.find_one(), Movie | None)


client: MongoClient[dict[str, Any]] = MongoClient(connect=False)
raw = MongoClient(document_class=RawBSONDocument, connect=False)
assert_type(raw.shop.movies.find_one(), RawBSONDocument | None)
with MongoClient(connect=False, document_class=RawBSONDocument) as same:
    assert_type(same, MongoClient[RawBSONDocument])
