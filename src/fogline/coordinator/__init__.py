"""Keeps what is wanted, and makes the nodes do it."""
