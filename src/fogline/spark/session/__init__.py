"""Spark sessions and what they need."""
