"""Query files over many nodes: from insights to jobs."""
