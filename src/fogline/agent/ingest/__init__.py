"""The ingest process: messages of brokers into the site's logs."""
