"""The REST interface of a node."""
