"""What every part may use: errors, settings, files, backoff."""
