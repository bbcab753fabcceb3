"""Publishers: each publishes occurrences as events to listeners, and as log messages."""
