"""Programs that each use one extra. tox installs only gmongo and the extra, and runs the program
without pytest.
"""
