"""The lowest floor: messages as bytes, and the sockets that carry them. Knows nothing of commands, pools or servers."""
