"""The program that writes the conformance pages in docs/conformance, and its tests.

A page lists the requirements of a specification, and the tests that prove each requirement.
"""
