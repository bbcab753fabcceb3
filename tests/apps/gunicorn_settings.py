"""Settings of gunicorn. Old versions ignore unknown settings."""

control_socket_disable = True  # the socket needs a thread, and Python warns of forks with threads
