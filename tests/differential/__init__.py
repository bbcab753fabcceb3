"""PyMongo as the judge: the same calls through both drivers, on the same server."""
