from __future__ import annotations

import datetime
import io
import os
import uuid

import gevent
import pymongo
import pytest
from bson import ObjectId
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
    Q,
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
from mongoengine.errors import (
    BulkWriteError,
    FieldDoesNotExist,
    InvalidQueryError,
    MultipleObjectsReturned,
    OperationError,
    ValidationError,
)
from mongoengine.queryset import QuerySet, queryset_manager
from pymongo.errors import OperationFailure

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
def connected():
    connect("books", host=URI, uuidRepresentation="standard")
    Author.ensure_indexes()
    yield
    get_connection().drop_database("books")
    disconnect()


def books(count=5):
    author = Author(name="Ada").save()
    books = [Book(author=author, title=f"Book {n}", price=n, tags=["t"] * n, counts={"n": n}) for n in range(count)]
    return author, Book.objects.insert(books)


def test_document_is_saved_reloaded_updated_and_deleted():
    author, (book, *_) = books()
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
    books()
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


# Name of the case -> a function that receives the query set of the stored books, and its expected result or error.
CALLS = {
    "count": (lambda: Book.objects.count(), 5),
    "count with limit": (lambda: Book.objects.limit(2).count(with_limit_and_skip=True), 2),
    "get": (lambda: Book.objects.get(title="Book 1").price, 1),
    "get without match": (lambda: Book.objects.get(title="None"), DoesNotExist),
    "get with several matches": (lambda: Book.objects.get(price__gt=1), MultipleObjectsReturned),
    "first": (lambda: Book.objects.first().title, "Book 0"),
    "first without match": (lambda: Book.objects(title="None").first(), None),
    "index": (lambda: Book.objects[3].title, "Book 3"),
    "index out of range": (lambda: Book.objects[30], IndexError),
    "slice": (lambda: titles(Book.objects[1:3]), ["Book 1", "Book 2"]),
    "skip and limit": (lambda: titles(Book.objects.skip(3).limit(5)), ["Book 3", "Book 4"]),
    "order": (lambda: titles(Book.objects.order_by("-price")[:2]), ["Book 4", "Book 3"]),
    "in": (lambda: titles(Book.objects(price__in=[1, 3])), ["Book 1", "Book 3"]),
    "nin": (lambda: titles(Book.objects(price__nin=[0, 1, 2])), ["Book 3", "Book 4"]),
    "ne": (lambda: Book.objects(price__ne=2).count(), 4),
    "gte and lt": (lambda: titles(Book.objects(price__gte=1, price__lt=3)), ["Book 1", "Book 2"]),
    "exists": (lambda: Book.objects(cover__exists=True).count(), 0),
    "startswith": (lambda: Book.objects(title__startswith="Book").count(), 5),
    "iexact": (lambda: Book.objects(title__iexact="bOOK 1").count(), 1),
    "raw": (lambda: Book.objects(__raw__={"price": {"$gt": 3}}).count(), 1),
    "or": (lambda: titles(Book.objects(Q(price=0) | Q(price=4))), ["Book 0", "Book 4"]),
    "not": (lambda: Book.objects(title__not__startswith="Book").count(), 0),
    "size": (lambda: titles(Book.objects(tags__size=2)), ["Book 2"]),
    "all": (lambda: Book.objects(tags__all=["t"]).count(), 4),
    "unknown field": (lambda: Book.objects(nothing=1).count(), InvalidQueryError),
    "unknown operator": (lambda: Book.objects(__raw__={"price": {"$nothing": 1}}).count(), OperationFailure),
    "only": (lambda: Book.objects.only("title").get(title="Book 2").price, None),
    "exclude": (lambda: Book.objects.exclude("tags").get(title="Book 2").tags, []),
    "fields": (lambda: Book.objects.fields(slice__tags=1).get(title="Book 3").tags, ["t"]),
    "scalar": (lambda: list(Book.objects.scalar("title", "price")[:1]), [("Book 0", 0)]),
    "values_list": (lambda: list(Book.objects.values_list("title")[:2]), ["Book 0", "Book 1"]),
    "distinct": (lambda: sorted(Book.objects.distinct("tags")), ["t"]),
    "sum": (lambda: Book.objects.sum("price"), 10),
    "average": (lambda: Book.objects.average("price"), 2),
    "aggregate": (lambda: [each["n"] for each in Book.objects.aggregate([{"$count": "n"}])], [5]),
    "collection of aggregate": (lambda: Book.objects.aggregate([])._collection.name, "book"),
    "update": (lambda: Book.objects(price__gt=2).update(set__title="New"), 2),
    "update with full result": (lambda: Book.objects.update(inc__price=1, full_result=True).modified_count, 5),
    "update_one": (lambda: Book.objects(price__gt=2).update_one(push__tags="x"), 1),
    "update of unknown field": (lambda: Book.objects.update(set__nothing=1), InvalidQueryError),
    "update without change": (lambda: Book.objects.update(), OperationError),
    "upsert_one": (lambda: Book.objects(title="Made").upsert_one(set__price=9).price, 9),
    "modify": (lambda: Book.objects(title="Book 1").modify(set__price=7).price, 1),
    "modify and return new document": (lambda: Book.objects(title="Book 1").modify(set__price=7, new=True).price, 7),
    "modify and remove": (lambda: (Book.objects(title="Book 1").modify(remove=True).title, Book.objects.count())[1], 4),
    "delete": (lambda: (Book.objects(price__lt=2).delete(), Book.objects.count()), (2, 3)),
    "save invalid document": (lambda: Book(title="x" * 61).save(), ValidationError),
    "save incomplete document": (lambda: Book().save(), ValidationError),
    "unknown attribute": (lambda: Book(nothing=1), FieldDoesNotExist),
    "reload deleted document": (lambda: [(book.delete(), book.reload()) for book in Book.objects], DoesNotExist),
    "hint": (lambda: Book.objects.hint([("tags", 1)]).count(), 5),
    "unknown hint": (lambda: list(Book.objects.hint("nothing")), OperationFailure),
    "collation": (lambda: Book.objects(title="BOOK 1").collation({"locale": "en", "strength": 2}).count(), 1),
    "manager of query sets": (lambda: Book.books_with_tag.count(), 4),
    "icontains": (lambda: Book.objects(title__icontains="BOOK").count(), 5),
    "in_bulk": (
        lambda: titles(Book.objects.in_bulk([each.id for each in Book.objects[:2]]).values()),
        ["Book 0", "Book 1"],
    ),
    "cursor options": (lambda: Book.objects.no_cache().timeout(False).batch_size(2).count(), 5),
    "explain": (lambda: "queryPlanner" in Book.objects.order_by().explain(), True),
    "to_json": (lambda: "Book 0" in Book.objects.first().to_json(), True),
    "as_pymongo": (lambda: Book.objects.as_pymongo().first()["title"], "Book 0"),
    "read_preference": (lambda: Book.objects.read_preference(pymongo.ReadPreference.PRIMARY).count(), 5),
    "modify with upsert": (lambda: Book.objects(title="x").modify(upsert=True, new=True, set__title="y").title, "y"),
    "update_one with upsert": (lambda: Book.objects(id=ObjectId()).update_one(set__title="x", upsert=True), 1),
    "client options": (lambda: get_connection()._options.read_preference.mode, 0),
}


@pytest.mark.parametrize("call", sorted(CALLS))
def test_call_of_query_set_returns_or_raises_expected_result(call):
    Book.ensure_indexes()
    books()
    function, expected = CALLS[call]
    if isinstance(expected, type):
        with pytest.raises(expected):
            function()
    else:
        assert function() == expected


def test_references_are_resolved_and_deleted():
    author, (book, *_) = books()
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
    _, (book, *_) = books()
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
    books()
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
