"""The publishing process: records from the site's logs to brokers."""
