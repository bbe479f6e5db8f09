"""Compositions and deployment plans: from text to a tree, with the place of every word."""
