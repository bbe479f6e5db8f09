"""The coordinator's REST interface and the service behind it."""
