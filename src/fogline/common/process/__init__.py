"""Processes: parents and children, how they start, write their logs and end."""
