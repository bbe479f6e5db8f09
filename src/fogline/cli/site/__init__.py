"""Commands that ask a site: about its store, about its logs."""
