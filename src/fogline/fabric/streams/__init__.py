"""Between the fabric and the site's logs, in both directions."""
