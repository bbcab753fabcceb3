"""Publishers: each turns something that happened into a log message and an event, if anybody wants either."""
