"""The network whose name server has the records of the official tests."""

from tests.support.dns import network

__all__ = ["network"]
