"""Servers that do as they are told, for tests of the driver's behaviour towards bad peers."""
