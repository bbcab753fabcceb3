"""Runs of an operation in which the harness interrupts the greenlet at one of its switches."""
