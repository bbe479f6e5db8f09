"""Copies of other nodes' values that this node keeps."""
