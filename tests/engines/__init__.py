"""Servers of other makes that speak MongoDB's protocol, as judges: each is a process beside the tests."""
