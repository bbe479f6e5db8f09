"""Replicas: decided by stability and queries, and sent to the nodes."""
