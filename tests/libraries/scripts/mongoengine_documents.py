from __future__ import annotations

import datetime
import io
import json
import os
import uuid
from pathlib import Path

import gevent
import mongoengine
import pymongo
import pytest
from mongoengine import (
    CASCADE,
    DateTimeField,
    DecimalField,
    DictField,
    Document,
    DoesNotExist,
    DynamicDocument,
    EmbeddedDocument,
    EmbeddedDocumentListField,
    FileField,
    GenericReferenceField,
    IntField,
    LazyReferenceField,
    ListField,
    MapField,
    NotUniqueError,
    ReferenceField,
    SequenceField,
    StringField,
    UUIDField,
    connect,
    disconnect,
    get_connection,
    get_db,
    register_connection,
    signals,
)
from mongoengine.context_managers import no_dereference, switch_collection, switch_db
from mongoengine.errors import BulkWriteError
from mongoengine.queryset import QuerySet, queryset_manager

URI = os.environ["MONGODB_URI"]


class Author(Document):
    name = StringField(unique=True)
    token = UUIDField(default=uuid.uuid4)
    meta = {"allow_inheritance": True}


class Editor(Author):
    office = IntField()


class Note(EmbeddedDocument):
    text = StringField()
    stars = IntField(default=0)


class Book(Document):
    author = ReferenceField(Author, reverse_delete_rule=CASCADE)
    lazy = LazyReferenceField(Author)
    anything = GenericReferenceField()
    title = StringField(required=True, max_length=60)
    price = DecimalField(precision=2)
    tags = ListField(StringField())
    notes = EmbeddedDocumentListField(Note)
    extra = DictField()
    counts = MapField(IntField())
    written = DateTimeField(default=lambda: datetime.datetime(2020, 1, 2, 3, 4, 5))
    number = SequenceField()
    cover = FileField()
    meta = {"indexes": ["tags", ("author", "-written")], "ordering": ["title"]}

    @queryset_manager
    def books_with_tag(doc_cls, queryset: QuerySet) -> QuerySet:
        return queryset.filter(tags__0__exists=True)


class Loose(DynamicDocument):
    pass


@pytest.fixture(autouse=True)
def open_connection():
    connect("books", host=URI, uuidRepresentation="standard")
    Author.ensure_indexes()
    yield
    get_connection().drop_database("books")
    disconnect()


def insert_books(count=5):
    author = Author(name="Ada").save()
    books = [Book(author=author, title=f"Book {n}", price=n, tags=["t"] * n, counts={"n": n}) for n in range(count)]
    return author, Book.objects.insert(books)


def test_document_is_saved_reloaded_updated_and_deleted():
    author, (book, *_) = insert_books()
    book.title = "New"
    book.notes.append(Note(text="x"))
    book.save()
    book.reload()
    assert (book.title, book.author.name, book.notes[0].text) == ("New", "Ada", "x")
    assert Author.objects.get(token=author.token) == author
    book.update(push__tags="a", inc__counts__n=2)
    assert Book.objects.get(id=book.id).counts == {"n": 2}
    book.delete()
    with pytest.raises(DoesNotExist):
        Book.objects.get(id=book.id)


def test_duplicate_key_raises_mongoengine_error():
    insert_books()
    with pytest.raises(NotUniqueError):
        Author(name="Ada").save()
    with pytest.raises(BulkWriteError):
        Author.objects.insert([Author(name="B"), Author(name="B")])
    with pytest.raises(NotUniqueError):
        Author.objects(name="B").update(set__name="Ada")
    with pytest.raises(pymongo.errors.DuplicateKeyError):
        Author._get_collection().insert_one({"_cls": "Author", "name": "Ada"})


def titles(books):
    return [each.title for each in books]


# Each row contains the name of the case, an expression, and its expected value or error.
CALLS = [json.loads(line) for line in Path(__file__).with_suffix(".jsonl").read_text("utf-8").splitlines()]


@pytest.mark.parametrize("row", CALLS, ids=lambda row: row["call"])
def test_call_of_query_set_returns_or_raises_expected_result(row):
    Book.ensure_indexes()
    insert_books()
    names = {**vars(mongoengine), **vars(mongoengine.errors), **globals()}
    expected = eval(row["expected"], names)
    if isinstance(expected, type):
        with pytest.raises(expected):
            eval(row["expression"], names)
    else:
        assert eval(row["expression"], names) == expected


def test_references_are_resolved_and_deleted():
    author, (book, *_) = insert_books()
    book.lazy = author
    book.anything = Editor(name="Eve", office=3).save()
    book.save()
    book = Book.objects.get(id=book.id)
    assert book.lazy.fetch().name == "Ada"
    assert book.anything.office == 3
    assert Book.objects(author=author).count() == 5
    with no_dereference(Book):
        assert not isinstance(Book.objects.first().author, Author)
    assert Book.objects.select_related()[0].author.name == "Ada"
    author.delete()
    assert Book.objects.count() == 0


def test_file_field_stores_replaces_and_deletes_content():
    _, (book, *_) = insert_books()
    book.cover.put(io.BytesIO(b"x" * 600_000), content_type="image/x", filename="cover")
    book.save()
    saved = Book.objects.get(id=book.id)
    assert (saved.cover.read(), saved.cover.content_type, saved.cover.filename) == (b"x" * 600_000, "image/x", "cover")
    saved.cover.replace(b"yy", content_type="image/y")
    saved.save()
    assert Book.objects.get(id=book.id).cover.read() == b"yy"
    saved.cover.delete()
    assert get_db().fs.chunks.count_documents({}) == 0


def test_save_sends_signal_and_increments_counter():
    saved_titles = []
    handler = lambda sender, document, **_: saved_titles.append(document.title)  # noqa: E731
    signals.post_save.connect(handler, sender=Book)
    Book(title="one").save()
    second = Book(title="two").save()
    assert saved_titles == ["one", "two"]
    assert second.number == Book.objects(title="one").first().number + 1


def test_context_managers_switch_database_and_collection():
    register_connection("second", "second_books", host=URI, uuidRepresentation="standard")
    insert_books()
    with switch_db(Author, "second") as second_author:
        second_author(name="Bob").save()
        assert [each.name for each in second_author.objects] == ["Bob"]
        get_connection("second").drop_database("second_books")
    with switch_collection(Author, "others") as others:
        others(name="Cid").save()
    assert get_db().others.count_documents({}) == 1
    assert [each.name for each in Author.objects] == ["Ada"]
    assert get_connection("second") is not None
    disconnect("second")


def test_dynamic_and_dictionary_fields_are_queried():
    Loose(anything=5, nested={"a": [1, {"b": 2}]}).save()
    assert Loose.objects(nested__a__1__b=2).first().anything == 5
    Book(title="t", extra={"k": {"deep": 1}}).save()
    assert Book.objects(extra__k__deep=1).count() == 1


def test_fifty_greenlets_write_with_one_connection_of_mongoengine():
    def write(number):
        Author(name=f"g{number}").save()
        return Author.objects.get(name=f"g{number}").name

    greenlets = [gevent.spawn(write, number) for number in range(50)]
    gevent.joinall(greenlets, raise_error=True)
    assert [each.value for each in greenlets] == [f"g{number}" for number in range(50)]


def test_indexes_declared_in_documents_exist():
    Book.ensure_indexes()
    assert "tags_1" in Book._get_collection().index_information()
    assert Book.compare_indexes() == {"missing": [], "extra": []}
    Book.drop_collection()
