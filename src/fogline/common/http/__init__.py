"""HTTP for coordinator, store and agent: server, client, tokens, bodies, parameters, replies."""
