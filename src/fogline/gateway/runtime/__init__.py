"""The gateway process: brokers, threads, the jobs it runs."""
