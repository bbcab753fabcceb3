"""Programs that run scenarios with gmongo, or with PyMongo under monkey-patching.

Each process runs one program with one driver.
"""
