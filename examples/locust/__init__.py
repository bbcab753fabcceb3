"""A load test with Locust on gmongo: every user is a greenlet, and all of them share one client."""
