"""A load test in which Locust uses gmongo: each user is a greenlet, and all users share one client."""
