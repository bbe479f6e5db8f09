"""The jobs of a site: assigned, running, draining; what they read and write."""
