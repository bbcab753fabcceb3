"""Settings of gunicorn. A version of gunicorn ignores a setting that the version does not know."""

# The control socket needs a thread, and Python warns of a fork in a process that has threads.
control_socket_disable = True
