"""What can be asked of the fabric, and the tables of its answers."""
