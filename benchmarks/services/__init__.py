"""A small JSON service on Flask and on Starlette, with a route that returns one document and a
route that returns a hundred.
"""
