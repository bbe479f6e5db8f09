"""Requests between nodes of the fabric: the client, bodies, replies."""
