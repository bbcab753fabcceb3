"""Code that several folders of tests share: scripted servers, recorders of events, waits, and fail
points.
"""
