"""The service on Starlette, with AsyncMongoClient of PyMongo."""

from __future__ import annotations

import json
import os
from typing import Any

from pymongo import AsyncMongoClient
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

from benchmarks.documents import DATABASE, HUNDRED, ONE, QUERY

database = AsyncMongoClient(os.environ["SERVICE_URI"])[DATABASE]


def _json(content: Any) -> Response:
    return Response(json.dumps(content, default=str), media_type="application/json")


async def one(_request: Any) -> Response:
    """Return one document."""
    return _json(await database[ONE].find_one(QUERY))


async def hundred(_request: Any) -> Response:
    """Return a hundred documents."""
    return _json(await database[HUNDRED].find().to_list())


app = Starlette(routes=[Route("/one", one), Route("/hundred", hundred)])
