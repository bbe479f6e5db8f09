"""The gateway: a small process near devices that runs light operators and forwards what is left."""
