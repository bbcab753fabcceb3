"""Tests of server discovery, monitoring and selection with scripted servers."""
