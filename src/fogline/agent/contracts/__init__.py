"""What the supervisor and the processes of a site send each other; the store's is in `fabric`."""
