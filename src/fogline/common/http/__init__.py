"""HTTP for all parts: the server, and which hosts it answers."""
