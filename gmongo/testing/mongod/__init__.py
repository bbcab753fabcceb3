"""Run MongoDB's own server, `mongod`, for tests."""
