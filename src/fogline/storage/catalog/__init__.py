"""Metadata, signatures and application data."""
