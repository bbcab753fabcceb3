"""Programs that run one scenario with gmongo, or with PyMongo under monkey-patching.

Each run of a program has its own process.
"""
