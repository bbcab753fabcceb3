"""Settings of gunicorn. Old versions ignore unknown settings."""

control_socket_disable = True  # with its thread, Python warns at each fork of gunicorn
