"""Settings of gunicorn. gunicorn ignores settings that its version does not support."""

# The control socket needs a thread, and Python warns of a fork in a process that has threads.
control_socket_disable = True
