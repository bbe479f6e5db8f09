"""Keeps the desired state and reconciles the nodes with it."""
