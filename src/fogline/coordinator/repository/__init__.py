"""The coordinator's tables."""
