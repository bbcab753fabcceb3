"""Shared helpers of tests: scripted servers, recorders, waiting, fail points."""
