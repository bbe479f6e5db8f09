"""The site's own broker, and connections to any broker."""
