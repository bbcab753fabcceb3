"""A project of Django's on MongoDB, whose settings, models and pages are in this file."""

from __future__ import annotations

import os
import sys
from datetime import datetime
from decimal import Decimal

import django
import gevent
import pymongo
import pytest
from bson import ObjectId
from django.conf import settings
from django.contrib.admin.apps import SimpleAdminConfig
from django.contrib.auth.apps import AuthConfig
from django.contrib.contenttypes.apps import ContentTypesConfig
from django.core.management import call_command
from django.urls import path

DATABASE = "django_project"
OBJECT_ID = "django_mongodb_backend.fields.ObjectIdAutoField"
LABELS = ("contenttypes", "auth", "admin", "shop")


class ContentTypes(ContentTypesConfig):
    default_auto_field = OBJECT_ID


class Auth(AuthConfig):
    default_auto_field = OBJECT_ID


class Admin(SimpleAdminConfig):
    default_auto_field = OBJECT_ID


class Shop(django.apps.AppConfig):
    name = __name__
    label = "shop"
    default_auto_field = OBJECT_ID


settings.configure(
    ALLOWED_HOSTS=["testserver"],
    DATABASES={
        "default": {"ENGINE": "django_mongodb_backend", "HOST": os.environ["MONGODB_URI"], "NAME": DATABASE},
    },
    DATABASE_ROUTERS=["django_mongodb_backend.routers.MongoRouter"],
    DEFAULT_AUTO_FIELD=OBJECT_ID,
    INSTALLED_APPS=[
        *(f"{__name__}.{each.__name__}" for each in (ContentTypes, Auth, Admin, Shop)),
        "django.contrib.messages",
        "django.contrib.sessions",
        "django_mongodb_backend",
    ],
    MIDDLEWARE=[
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
        "django.contrib.messages.middleware.MessageMiddleware",
    ],
    MIGRATION_MODULES={label: f"django_project_migrations.{label}" for label in LABELS},
    PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
    ROOT_URLCONF=__name__,
    SECRET_KEY="of the tests",
    TEMPLATES=[
        {
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "APP_DIRS": True,
            "OPTIONS": {
                "context_processors": [
                    "django.template.context_processors.request",
                    "django.contrib.auth.context_processors.auth",
                    "django.contrib.messages.context_processors.messages",
                ]
            },
        }
    ],
    USE_TZ=False,
)
django.setup()

from django.contrib import admin  # noqa: E402
from django.contrib.auth.admin import UserAdmin  # noqa: E402
from django.contrib.auth.models import User  # noqa: E402
from django.db import IntegrityError, connection, models  # noqa: E402
from django.db.models import Avg, Count, F, Max, Q, Sum  # noqa: E402
from django.test import Client  # noqa: E402
from django_mongodb_backend import transaction  # noqa: E402
from django_mongodb_backend.fields import ArrayField, EmbeddedModelField  # noqa: E402
from django_mongodb_backend.managers import MongoManager  # noqa: E402
from django_mongodb_backend.models import EmbeddedModel  # noqa: E402


class Author(models.Model):
    name = models.CharField(max_length=40, unique=True)
    born = models.IntegerField(null=True, blank=True)

    class Meta:
        app_label = "shop"

    def __str__(self):
        return self.name


class Binding(EmbeddedModel):
    kind = models.CharField(max_length=20)
    pages = models.IntegerField(default=0)

    class Meta:
        app_label = "shop"


class Book(models.Model):
    title = models.CharField(max_length=80)
    author = models.ForeignKey(Author, models.CASCADE, related_name="books")
    price = models.DecimalField(max_digits=8, decimal_places=2, default=Decimal(5))
    stock = models.IntegerField(default=0)
    added = models.DateTimeField(default=datetime(2020, 1, 2, 3, 4, 5))
    binding = EmbeddedModelField(Binding, null=True, blank=True)
    facts = models.JSONField(default=dict, blank=True)
    words = ArrayField(models.CharField(max_length=20), default=list, blank=True)

    objects = MongoManager()

    class Meta:
        app_label = "shop"
        constraints = (models.UniqueConstraint(fields=["author", "title"], name="one_title"),)
        indexes = (models.Index(fields=["stock"], name="by_stock"),)

    def __str__(self):
        return self.title


class Tag(models.Model):
    name = models.CharField(max_length=20)
    books = models.ManyToManyField(Book, related_name="tags")

    class Meta:
        app_label = "shop"


class BookAdmin(admin.ModelAdmin):
    fields = ("title", "author", "price", "stock")
    list_display = ("title", "author", "price", "stock")
    list_filter = ("stock",)
    search_fields = ("title", "author__name")
    ordering = ("title",)


site = admin.AdminSite()
site.register(Author)
site.register(Book, BookAdmin)
site.register(User, UserAdmin)
urlpatterns = [path("admin/", site.urls)]


@pytest.fixture(scope="module", autouse=True)
def migrated(tmp_path_factory):
    """Migrations are written, as for every project on this backend, and run."""
    folder = tmp_path_factory.mktemp("migrations")
    for label in LABELS:
        (folder / "django_project_migrations" / label).mkdir(parents=True)
        (folder / "django_project_migrations" / label / "__init__.py").touch()
    sys.path.insert(0, str(folder))
    call_command("makemigrations", *LABELS, verbosity=0)
    call_command("migrate", verbosity=0)
    User.objects.create_superuser("ada", "ada@example.org", "secret")
    yield
    connection.ensure_connection()
    connection.connection.drop_database(DATABASE)
    connection.close_pool()


@pytest.fixture
def books():
    authors = {name: Author.objects.create(name=name, born=born) for name, born in (("Ann", 1900), ("Bob", 1950))}
    for number in range(6):
        Book.objects.create(
            title=f"Book {number}",
            author=authors["Ann" if number % 2 else "Bob"],
            price=Decimal(f"{number}.50"),
            stock=number,
            binding=Binding(kind="paper" if number < 4 else "cloth", pages=100 * number),
            facts={"shelf": number % 3, "deep": {"list": [number]}},
            words=[f"word{number}", "all"],
        )
    yield Book.objects
    for model in (Tag, Book, Author):
        model.objects.all().delete()


def book(number):
    return Book.objects.get(title=f"Book {number}")


def titles(found):
    return [int(each.title.removeprefix("Book ")) for each in found]


def saved(change):
    one = book(1)
    change(one)
    one.save()
    return book(1)


def moved(stock, changes):
    """The stock of all, after some changed it."""
    changed = changes(stock)
    return changed, list(stock.order_by("title").values_list("stock", flat=True))


def bulk_updated(books):
    changed = list(books.order_by("title"))
    for each in changed:
        each.stock *= 10
    return books.bulk_update(changed, ["stock"])


def bulk_created(books):
    made = books.bulk_create([Book(title=f"Book {n}", author=book(0).author) for n in (6, 7, 8)], batch_size=2)
    return [type(each.pk) for each in made], books.count()


def deleted_and_again(books):
    one = book(1)
    one.delete()
    one.save()
    return one.pk == book(1).pk


def tagged(books):
    tag = Tag.objects.create(name="new")
    tag.books.add(book(1), book(2))
    tag.books.remove(book(1))
    tag.books.add(book(3))
    return titles(tag.books.order_by("title")), titles(books.filter(tags__name="new").order_by("-title"))


def by_pipeline(books):
    found = books.raw_aggregate([{"$match": {"stock": {"$gte": 4}}}, {"$sort": {"stock": -1}}])
    return [(each.title, each.binding.pages) for each in found]


PAPER, CLOTH = Q(binding__kind="paper"), Q(binding__kind="cloth")
# What is asked of the models, and the answer.
CALLS = {
    "create": (lambda b: type(book(0).pk), ObjectId),
    "get": (lambda b: (book(3).price, book(3).author.name), (Decimal("3.50"), "Ann")),
    "get, by its id": (lambda b: b.get(pk=str(book(2).pk)).title, "Book 2"),
    "get, nothing": (lambda b: b.get(title="nothing"), Book.DoesNotExist),
    "get, several": (lambda b: b.get(stock__gt=1), Book.MultipleObjectsReturned),
    "save an existing object": (lambda b: saved(lambda one: setattr(one, "stock", 99)).stock, 99),
    "save a field": (lambda b: (book(1).save(update_fields=["stock"]), b.count())[1], 6),
    "save an embedded model": (lambda b: saved(lambda one: setattr(one.binding, "pages", 7)).binding.pages, 7),
    "save JSON": (lambda b: saved(lambda one: one.facts.update(new=[None])).facts["new"], [None]),
    "save an array": (lambda b: saved(lambda one: one.words.append("more")).words, ["word1", "all", "more"]),
    "save with F": (lambda b: saved(lambda one: setattr(one, "stock", F("stock") + 5)).stock, 6),
    "save what was deleted": (deleted_and_again, True),
    "refresh_from_db": (lambda b: (one := book(1), b.update(stock=3), one.refresh_from_db())[0].stock, 3),
    "update": (lambda b: moved(b, lambda b: b.filter(stock__gte=4).update(stock=0)), (2, [0, 1, 2, 3, 0, 0])),
    "update with F": (lambda b: moved(b, lambda b: b.update(stock=F("stock") * 2 + 1)), (6, [1, 3, 5, 7, 9, 11])),
    "update nothing": (lambda b: b.filter(stock=99).update(stock=1), 0),
    "bulk_create": (bulk_created, ([ObjectId] * 3, 9)),
    "bulk_update": (lambda b: moved(b, bulk_updated), (6, [0, 10, 20, 30, 40, 50])),
    "get_or_create, there": (lambda b: Author.objects.get_or_create(name="Ann", defaults={"born": 1})[1], False),
    "get_or_create, not there": (lambda b: Author.objects.get_or_create(name="New", defaults={"born": 1})[0].born, 1),
    "update_or_create": (lambda b: Author.objects.update_or_create(name="Ann", defaults={"born": 5})[0].born, 5),
    "delete one": (lambda b: (book(1).delete()[0], b.count()), (1, 5)),
    "delete several": (lambda b: (b.filter(CLOTH).delete()[0], b.count()), (2, 4)),
    "delete what others refer to": (lambda b: (Author.objects.get(name="Ann").delete()[0], b.count()), (4, 3)),
    "unique field": (lambda b: Author.objects.create(name="Ann"), IntegrityError),
    "unique constraint": (lambda b: b.create(title="Book 1", author=book(1).author), IntegrityError),
    "unique, in bulk": (lambda b: b.bulk_create([Book(title="Book 1", author=book(1).author)]), IntegrityError),
    "aggregate": (
        lambda b: b.aggregate(n=Count("pk"), sum=Sum("stock"), most=Max("price"), mean=Avg("stock")),
        {"n": 6, "sum": 15, "most": Decimal("5.50"), "mean": 2.5},
    ),
    "aggregate nothing": (lambda b: b.filter(stock=99).aggregate(n=Count("pk"), s=Sum("stock")), {"n": 0, "s": None}),
    "annotate": (
        lambda b: list(
            Author.objects.annotate(n=Count("books"), sum=Sum("books__stock")).order_by("name").values_list("n", "sum")
        ),
        [(3, 9), (3, 6)],
    ),
    "annotate, F": (
        lambda b: list(b.annotate(worth=F("stock") * 2).filter(worth__gt=6).values_list("worth", flat=True)),
        [8, 10],
    ),
    "values": (lambda b: list(b.values("stock").filter(stock=2)), [{"stock": 2}]),
    "group": (
        lambda b: list(b.values("author__name").annotate(n=Sum("stock")).order_by("author__name").values_list("n")),
        [(9,), (6,)],
    ),
    "filter": (lambda b: titles(b.filter(stock__in=[1, 4]).order_by("title")), [1, 4]),
    "filter, several": (lambda b: titles(b.filter(title__startswith="Book", stock__lt=2).order_by("stock")), [0, 1]),
    "filter, Q": (lambda b: titles(b.filter((PAPER & Q(stock__gt=2)) | Q(stock=0)).order_by("stock")), [0, 3]),
    "filter, not": (lambda b: titles(b.filter(~PAPER).order_by("stock")), [4, 5]),
    "filter, of what is referred to": (lambda b: titles(b.filter(author__born__lt=1920).order_by("stock")), [1, 3, 5]),
    "filter, regular expression": (lambda b: titles(b.filter(title__iregex="^BOOK [12]").order_by("stock")), [1, 2]),
    "filter, JSON": (lambda b: titles(b.filter(facts__shelf=2).order_by("stock")), [2, 5]),
    "filter, deep JSON": (lambda b: titles(b.filter(facts__deep__list__0=3)), [3]),
    "filter, array": (lambda b: titles(b.filter(words__contains=["word5"])), [5]),
    "filter, embedded": (lambda b: titles(b.filter(binding__pages__gte=400).order_by("stock")), [4, 5]),
    "filter, date": (lambda b: b.filter(added__year=2020, added__lt=datetime(2021, 1, 1)).count(), 6),
    "exclude": (lambda b: titles(b.exclude(stock__lt=4).order_by("stock")), [4, 5]),
    "order_by": (lambda b: titles(b.order_by("author__name", "-stock")), [5, 3, 1, 4, 2, 0]),
    "slice": (lambda b: titles(b.order_by("stock")[2:4]), [2, 3]),
    "first and last": (lambda b: titles([b.order_by("stock").first(), b.order_by("stock").last()]), [0, 5]),
    "reverse": (lambda b: titles(b.order_by("stock").reverse()[:2]), [5, 4]),
    "distinct": (lambda b: sorted(b.values_list("author__name", flat=True).distinct()), ["Ann", "Bob"]),
    "exists": (lambda b: (b.filter(stock=5).exists(), b.filter(stock=9).exists()), (True, False)),
    "select_related": (lambda b: {each.author.name for each in b.select_related("author")}, {"Ann", "Bob"}),
    "prefetch_related": (
        lambda b: [len(each.books.all()) for each in Author.objects.prefetch_related("books")],
        [3, 3],
    ),
    "in_bulk": (lambda b: len(b.in_bulk([book(0).pk, book(1).pk])), 2),
    "iterator": (lambda b: titles(b.order_by("stock").iterator(chunk_size=2)), [0, 1, 2, 3, 4, 5]),
    "only": (lambda b: b.only("title").get(stock=2).price, Decimal("2.50")),
    "subquery": (lambda b: titles(b.filter(author__in=Author.objects.filter(name="Bob")).order_by("stock")), [0, 2, 4]),
    "many to many": (tagged, ([2, 3], [3, 2])),
    "raw_aggregate": (by_pipeline, [("Book 5", 500), ("Book 4", 400)]),
    "raw_aggregate, wrong": (lambda b: list(b.raw_aggregate([{"$nothing": 1}])), pymongo.errors.OperationFailure),
    "explain": (lambda b: "command" in b.filter(stock=1).explain(), True),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_call(books, call):
    ask, expected = CALLS[call]
    if isinstance(expected, type) and issubclass(expected, Exception):
        with pytest.raises(expected):
            ask(books)
    else:
        assert ask(books) == expected


def test_migrations():
    call_command("makemigrations", check_changes=True, verbosity=0)
    call_command("migrate", check_unapplied=True, verbosity=0)
    collections = connection.introspection.table_names()
    assert {"shop_author", "shop_book", "shop_tag", "auth_user", "django_session", "django_migrations"} <= {
        *collections
    }
    assert "by_stock" in connection.get_collection("shop_book").index_information()
    call_command("migrate", "shop", "zero", verbosity=0)
    assert "shop_book" not in connection.introspection.table_names()
    call_command("migrate", "shop", verbosity=0)
    assert "shop_book" in connection.introspection.table_names()


def test_the_connection_is_the_drivers():
    connection.ensure_connection()
    assert isinstance(connection.connection, pymongo.MongoClient)
    call_command("check", verbosity=0)


@pytest.mark.parametrize("fails", [False, True])
def test_transactions(books, fails):
    told = []
    try:
        with transaction.atomic():
            book(0).delete()
            books.filter(stock=1).update(stock=50)
            with transaction.atomic():
                Author.objects.create(name="inner")
            books.bulk_create([Book(title="Book 9", author=book(1).author)])
            transaction.on_commit(lambda: told.append("committed"))
            assert (books.count(), book(1).stock) == (6, 50)
            if fails:
                raise KeyError
    except KeyError:
        assert fails
    there = [books.filter(title=f"Book {number}").exists() for number in (0, 9)]
    assert (there, book(1).stock) == (([True, False], 1) if fails else ([False, True], 50))
    assert Author.objects.filter(name="inner").exists() is not fails
    assert told == ([] if fails else ["committed"])


def test_a_function_in_a_transaction(books):
    @transaction.atomic
    def twice():
        Author.objects.create(name="Cid")
        Author.objects.create(name="Cid")

    with pytest.raises(IntegrityError):
        twice()
    assert not Author.objects.filter(name="Cid").exists()


def test_greenlets(books):
    def sell(number):
        with transaction.atomic():
            Author.objects.create(name=f"greenlet {number}")
        return books.filter(title=f"Book {number % 6}").update(stock=F("stock") + 100)

    greenlets = [gevent.spawn(sell, number) for number in range(18)]
    gevent.joinall(greenlets, raise_error=True)
    assert [each.value for each in greenlets] == [1] * 18
    assert sorted(books.values_list("stock", flat=True)) == [300, 301, 302, 303, 304, 305]
    assert Author.objects.filter(name__startswith="greenlet").count() == 18


# The admin's pages

NEW = {"title": "Book 7", "price": "7.00", "stock": "7"}


@pytest.fixture
def browser():
    browser = Client()
    assert browser.post("/admin/login/", {"username": "ada", "password": "secret"}).status_code == 302
    return browser


def page(answer):
    assert answer.status_code == 200, (answer.status_code, answer.headers)
    return answer.content.decode()


def shown(browser, query=""):
    """Which books a list has."""
    text = page(browser.get(f"/admin/shop/book/{query}"))
    return [number for number in range(10) if f">Book {number}</a>" in text]


def added(browser):
    fields = {**NEW, "author": str(book(0).author.pk)}
    answer = browser.post("/admin/shop/book/add/", fields)
    return answer.status_code, book(7).price, shown(browser)


def refused(browser):
    text = page(browser.post("/admin/shop/book/add/", {**NEW, "author": "wrong", "title": ""}))
    return "This field is required" in text, "not one of the available choices" in text or "valid" in text


def changed(browser):
    one = book(1)
    fields = {"title": "Book 8", "author": str(one.author.pk), "price": "1.25", "stock": "11"}
    answer = browser.post(f"/admin/shop/book/{one.pk}/change/", fields)
    one.refresh_from_db()
    history = page(browser.get(f"/admin/shop/book/{one.pk}/history/"))
    return answer.status_code, one.stock, one.binding.pages, "Changed Title, Price and Stock" in history


def deleted(browser):
    where = f"/admin/shop/book/{book(1).pk}/delete/"
    asked = "Are you sure" in page(browser.get(where))
    return asked, browser.post(where, {"post": "yes"}).status_code, shown(browser)


def deleted_together(browser):
    chosen = {"action": "delete_selected", "_selected_action": [str(book(n).pk) for n in (0, 5)]}
    asked = "Are you sure" in page(browser.post("/admin/shop/book/", chosen))
    return asked, browser.post("/admin/shop/book/", {**chosen, "post": "yes"}).status_code, shown(browser)


def deleted_with_books(browser):
    where = f"/admin/shop/author/{Author.objects.get(name='Ann').pk}/delete/"
    named = "Book 5" in page(browser.get(where))
    return named, browser.post(where, {"post": "yes"}).status_code, shown(browser)


def taken(browser):
    return "already exists" in page(browser.post("/admin/shop/author/add/", {"name": "Ann", "born": "1"}))


def user_added(browser):
    fields = {"username": "bea", "usable_password": "true", "password1": "long words", "password2": "long words"}
    status = browser.post("/admin/auth/user/add/", fields).status_code
    made = User.objects.filter(username="bea")
    return status, made.get().check_password("long words"), made.delete()[0]


def logged_out(browser):
    return browser.post("/admin/logout/").status_code, browser.get("/admin/").status_code


ALL = [0, 1, 2, 3, 4, 5]
VISITS = {
    "index": (lambda b: "Books" in page(b.get("/admin/")), True),
    "of an application": (lambda b: "Authors" in page(b.get("/admin/shop/")), True),
    "list": (shown, ALL),
    "list, searched": (lambda b: shown(b, "?q=Book+3"), [3]),
    "list, searched by what is referred to": (lambda b: shown(b, "?q=ann"), [1, 3, 5]),
    "list, filtered": (lambda b: shown(b, "?stock=4"), [4]),
    "list, ordered": (lambda b: shown(b, "?o=-4.2"), ALL),
    "add, empty": (lambda b: 'name="price"' in page(b.get("/admin/shop/book/add/")), True),
    "add": (added, (302, Decimal("7.00"), [*ALL, 7])),
    "add, refused": (refused, (True, True)),
    "add, taken": (taken, True),
    "change, as it is": (lambda b: 'value="Book 1"' in page(b.get(f"/admin/shop/book/{book(1).pk}/change/")), True),
    "change": (changed, (302, 11, 100, True)),
    "change, nothing there": (lambda b: b.get(f"/admin/shop/book/{ObjectId()}/change/").status_code, 302),
    "delete": (deleted, (True, 302, [0, 2, 3, 4, 5])),
    "delete several": (deleted_together, (True, 302, [1, 2, 3, 4])),
    "delete with what refers to it": (deleted_with_books, (True, 302, [0, 2, 4])),
    "users": (lambda b: "ada@example.org" in page(b.get("/admin/auth/user/?q=ada")), True),
    "add a user": (user_added, (302, True, 1)),
    "log out": (logged_out, (200, 302)),
}


@pytest.mark.parametrize("visit", VISITS)
def test_a_visit(books, browser, visit):
    do, expected = VISITS[visit]
    assert do(browser) == expected


def test_without_a_login():
    browser = Client()
    assert browser.get("/admin/shop/book/").headers["Location"].startswith("/admin/login/")
    assert "correct username and password" in page(browser.post("/admin/login/", {"username": "ada", "password": "no"}))
