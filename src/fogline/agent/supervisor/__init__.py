"""The site process: starts and watches its children, reports how they are."""
