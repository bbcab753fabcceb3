"""A MongoEngine application without gmongo code, and the one line that runs it on gmongo."""
