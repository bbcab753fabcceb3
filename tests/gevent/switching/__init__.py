"""Harness that runs an operation in a greenlet, and interrupts the greenlet at one of its
switches.
"""
