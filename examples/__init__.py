"""Programs that show gmongo at work."""
