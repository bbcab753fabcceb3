"""Tests of server discovery, server monitoring and server selection with scripted servers."""
