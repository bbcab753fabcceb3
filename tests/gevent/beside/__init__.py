"""Scenes that are played with gmongo, and with PyMongo under monkey-patching, each in a process of its own."""
