"""One job of a gateway: its chain of operators, its checks and its files."""
