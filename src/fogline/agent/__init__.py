"""The site process and what it starts."""
