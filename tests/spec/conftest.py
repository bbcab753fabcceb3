"""The network whose name server has the records of the official tests."""

from tests.scripted.dns import network

__all__ = ["network"]
