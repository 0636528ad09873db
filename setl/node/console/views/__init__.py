"""What the console asks for again and again: the arbiter, the nodes, open loads."""
