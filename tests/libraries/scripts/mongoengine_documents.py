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
    def tagged(doc_cls, queryset: QuerySet) -> QuerySet:
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


def shelf(count=5):
    author = Author(name="Ada").save()
    books = [Book(author=author, title=f"Book {n}", price=n, tags=["t"] * n, counts={"n": n}) for n in range(count)]
    return author, Book.objects.insert(books)


def test_save_reload_update_delete():
    author, (book, *_) = shelf()
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


def test_unique_is_an_error_of_mongoengines():
    shelf()
    with pytest.raises(NotUniqueError):
        Author(name="Ada").save()
    with pytest.raises(BulkWriteError):
        Author.objects.insert([Author(name="B"), Author(name="B")])
    with pytest.raises(NotUniqueError):
        Author.objects(name="B").update(set__name="Ada")
    with pytest.raises(pymongo.errors.DuplicateKeyError):
        Author._get_collection().insert_one({"_cls": "Author", "name": "Ada"})


def test_queries():
    shelf(10)
    assert Book.objects(tags__size=3).count() == 1
    assert [each.title for each in Book.objects(Q(price__gt=7) | Q(title="Book 1"))] == ["Book 1", "Book 8", "Book 9"]
    assert Book.objects.order_by("-price").first().title == "Book 9"
    assert [each.title for each in Book.objects[2:4]] == ["Book 2", "Book 3"]
    assert Book.objects.only("title").first().tags == []
    assert Book.objects.scalar("title").limit(2)[0] == "Book 0"
    assert sorted(Book.objects.distinct("title"))[0] == "Book 0"
    assert Book.tagged.count() == 9
    assert Book.objects(title__icontains="BOOK").count() == 10
    assert Book.objects.in_bulk([each.id for each in Book.objects[:3]]).keys() == {each.id for each in Book.objects[:3]}
    assert Book.objects.sum("price") == 45 and Book.objects.average("price") == 4.5
    assert Book.objects(title="Book 3").modify(set__title="Z", new=True).title == "Z"
    assert Book.objects(title="None").modify(upsert=True, new=True, set__title="Made").title == "Made"
    assert len(list(Book.objects.aggregate([{"$match": {"price": {"$lt": 3}}}, {"$sort": {"price": 1}}]))) == 3
    assert Book.objects.no_cache().timeout(False).batch_size(2).count() == 11
    assert Book.objects.explain()
    assert Book.objects.first().to_json()
    assert Book.objects.as_pymongo().first()["title"] == "Book 0"
    assert Book.objects.read_preference(pymongo.ReadPreference.PRIMARY).count() == 11
    assert Book.objects(id=ObjectId()).update_one(set__title="x", upsert=True) == 1


def test_references():
    author, (book, *_) = shelf()
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


def test_files():
    _, (book, *_) = shelf()
    book.cover.put(io.BytesIO(b"x" * 600_000), content_type="image/x", filename="cover")
    book.save()
    found = Book.objects.get(id=book.id)
    assert (found.cover.read(), found.cover.content_type, found.cover.filename) == (b"x" * 600_000, "image/x", "cover")
    found.cover.replace(b"yy", content_type="image/y")
    found.save()
    assert Book.objects.get(id=book.id).cover.read() == b"yy"
    found.cover.delete()
    assert get_db().fs.chunks.count_documents({}) == 0


def test_signals_and_counters():
    seen = []
    handler = lambda sender, document, **_: seen.append(document.title)  # noqa: E731
    signals.post_save.connect(handler, sender=Book)
    Book(title="one").save()
    second = Book(title="two").save()
    assert seen == ["one", "two"]
    assert second.number == Book.objects(title="one").first().number + 1


def test_aliases_and_switching():
    register_connection("second", "second_books", host=URI, uuidRepresentation="standard")
    shelf()
    with switch_db(Author, "second") as there:
        there(name="Bob").save()
        assert [each.name for each in there.objects] == ["Bob"]
        get_connection("second").drop_database("second_books")
    with switch_collection(Author, "others") as others:
        others(name="Cid").save()
    assert get_db().others.count_documents({}) == 1
    assert [each.name for each in Author.objects] == ["Ada"]
    assert get_connection("second") is not None
    disconnect("second")


def test_dynamic_documents_and_dictionaries():
    Loose(anything=5, nested={"a": [1, {"b": 2}]}).save()
    assert Loose.objects(nested__a__1__b=2).first().anything == 5
    Book(title="t", extra={"k": {"deep": 1}}).save()
    assert Book.objects(extra__k__deep=1).count() == 1


def test_greenlets_share_the_connection():
    def write(number):
        Author(name=f"g{number}").save()
        return Author.objects.get(name=f"g{number}").name

    greenlets = [gevent.spawn(write, number) for number in range(50)]
    gevent.joinall(greenlets, raise_error=True)
    assert [each.value for each in greenlets] == [f"g{number}" for number in range(50)]


def test_indexes():
    Book.ensure_indexes()
    assert "tags_1" in Book._get_collection().index_information()
    assert Book.compare_indexes() == {"missing": [], "extra": []}
    Book.drop_collection()
