"""Jobs of a site on Spark: queries, first stages and the user's own code."""
