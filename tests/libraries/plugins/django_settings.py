"""Django settings for the folder ``tests`` in the source distribution of the Django backend."""

from __future__ import annotations

import os
import sys
from pathlib import Path

_DATABASE = {"ENGINE": "django_mongodb_backend", "HOST": os.environ["MONGODB_URI"]}

DATABASES = {
    "default": {**_DATABASE, "NAME": "djangotests"},
    "other": {**_DATABASE, "NAME": "djangotests-other"},
    "encrypted": {},
}
DATABASE_ROUTERS = ["django_mongodb_backend.routers.MongoRouter"]
DEFAULT_AUTO_FIELD = "django_mongodb_backend.fields.ObjectIdAutoField"
INSTALLED_APPS = [
    "django_on_mongodb.ContentTypes",
    "django_on_mongodb.Auth",
    "django_mongodb_backend",
    # Install a tested application only if the command line names the folder of its tests.
    *(each for each in sys.argv if (Path.cwd() / each / "__init__.py").exists()),
]
MIGRATION_MODULES = {"auth": None, "contenttypes": None}
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
SECRET_KEY = "test key"
TEST_RUNNER = "django_on_mongodb.Runner"
USE_TZ = False
