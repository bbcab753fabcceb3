"""Programs that use one extra each. tox runs each program with only gmongo and the extra, so without pytest."""
