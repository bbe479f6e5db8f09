"""What is known of nodes and their stores. No I/O."""
