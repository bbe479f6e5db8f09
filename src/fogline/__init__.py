"""Fogline: declare IoT stream analytics once and run it anywhere between the edge and the cloud."""

__version__ = "0.1.0"
