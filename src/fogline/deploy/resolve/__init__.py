"""Manifests resolved: names looked up, everything checked, routes between jobs."""
