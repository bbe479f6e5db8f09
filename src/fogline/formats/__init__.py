"""Messages of devices into records: the Python decoders."""
