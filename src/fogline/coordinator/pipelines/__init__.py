"""Pipelines as they are handed in: their texts, changes to them, users' code."""
