"""What tests of several folders stand on: servers that do as they are told, recorders, waiting, fail points."""
