"""The one path that every command takes: select a server, check a connection out, run, judge, perhaps again."""
