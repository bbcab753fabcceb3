"""The server side of the authentication of clients."""
