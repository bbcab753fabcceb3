"""Programs that run one scenario with gmongo, or with PyMongo under monkey-patching.

Each program runs in its own process.
"""
