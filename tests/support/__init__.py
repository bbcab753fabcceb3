"""Code that several folders of tests share, such as scripted servers, recorders of events, waits
and fail points.
"""
