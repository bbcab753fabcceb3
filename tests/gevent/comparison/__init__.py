"""Programs that run one scenario with gmongo, or with PyMongo under monkey-patching. Each run has its own process."""
