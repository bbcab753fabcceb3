"""One small JSON service, written for two kinds of concurrency: a document, and a list of a hundred."""
