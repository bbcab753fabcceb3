"""Settings of gunicorn. Versions that do not know a setting ignore the setting."""

control_socket_disable = True  # the socket needs a thread, and Python warns if a process with threads forks
