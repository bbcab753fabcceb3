"""A small JSON service for two kinds of concurrency, with a route for one document and a route for a hundred."""
