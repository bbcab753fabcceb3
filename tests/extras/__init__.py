"""Programs that use one extra each. tox installs only gmongo and the extra, without pytest."""
