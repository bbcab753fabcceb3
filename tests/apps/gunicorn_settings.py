"""Settings of gunicorn; versions that do not know one ignore it."""

control_socket_disable = True  # its thread makes Python warn of gunicorn's own forks
