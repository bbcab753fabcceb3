"""Authentication: what is said on a connection to prove who the client is. Mechanisms know no sockets."""
