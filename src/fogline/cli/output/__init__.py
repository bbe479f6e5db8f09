"""Answers as people and machines read them."""
