"""From syntax tree to a checked plan: names, types, keys and windows."""
