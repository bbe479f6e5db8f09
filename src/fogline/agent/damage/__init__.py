"""Damage in the site's logs: repaired from the broker's journal, or reported."""
