"""A site's configuration file."""
