"""Tests of ``differences.tsv`` and of the functions that read and use the table.

``tox -e pymongo`` runs PyMongo's tests.
"""

from __future__ import annotations

import importlib

from tests.pymongo_suite.differences import read_differences


def test_table_of_differences_is_sorted_and_valid() -> None:
    table = read_differences()
    assert [problem for line in table.values() if (problem := line.problem()) is not None] == []
    assert list(table) == sorted(table)


def test_numbers_that_pymongo_tests_change_exist_in_gmongo() -> None:
    private = importlib.import_module("tests.pymongo_suite.private_names")
    assert all(hasattr(owner, name) for owner, name in private._INITIAL_VALUES)
