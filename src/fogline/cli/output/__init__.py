"""Responses as tables and as JSON."""
