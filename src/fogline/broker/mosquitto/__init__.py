"""Mosquitto as a child process, with the plugins for its journal and for access."""
