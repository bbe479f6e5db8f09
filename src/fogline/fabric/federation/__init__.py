"""All nodes as one."""
