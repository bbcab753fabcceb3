"""A load test with Locust on gmongo: each user is a greenlet, and all users share one client."""
