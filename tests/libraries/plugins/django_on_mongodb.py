"""Classes to which the settings for the tests of the Django backend refer.

The module contains configurations of applications whose primary keys are ObjectIds, and a test
runner that writes a report.
"""

from __future__ import annotations

import os
import unittest
from xml.etree import ElementTree

from django.contrib.auth.apps import AuthConfig
from django.contrib.contenttypes.apps import ContentTypesConfig
from django.test.runner import DiscoverRunner

OBJECT_ID_FIELD = "django_mongodb_backend.fields.ObjectIdAutoField"


class Auth(AuthConfig):
    default_auto_field = OBJECT_ID_FIELD


class ContentTypes(ContentTypesConfig):
    default_auto_field = OBJECT_ID_FIELD


class _Result(unittest.TextTestResult):
    """Test result that also lists the passed tests, because the report must contain all tests."""

    def startTestRun(self) -> None:
        super().startTestRun()
        self.passed: list[unittest.TestCase] = []

    def addSuccess(self, test: unittest.TestCase) -> None:
        super().addSuccess(test)
        self.passed.append(test)


class Runner(DiscoverRunner):
    """Test runner of Django that writes a JUnit report, as pytest does."""

    def get_resultclass(self) -> type[unittest.TextTestResult]:
        return _Result

    def suite_result(self, suite: unittest.TestSuite, result: _Result, **options: object) -> int:
        report = ElementTree.Element("testsuite")
        for test in result.passed:
            ElementTree.SubElement(report, "testcase", classname=type(test).__name__, name=test.id())
        for test, _ in [*result.failures, *result.errors, *result.skipped]:
            element = ElementTree.SubElement(report, "testcase", classname=type(test).__name__, name=test.id())
            ElementTree.SubElement(element, "failure")
        ElementTree.ElementTree(report).write(os.environ["GMONGO_REPORT"])
        return super().suite_result(suite, result, **options)
