"""The conformance pages in docs/conformance.

A page lists requirements, each with the tests that prove the requirement.
"""
