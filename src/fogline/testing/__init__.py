"""What tests of Fogline, and of query files, are made with."""
