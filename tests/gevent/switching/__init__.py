"""Interruption of a greenlet at each of its switches."""
