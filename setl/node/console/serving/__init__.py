"""How the console is served: who asks, with what rights, and how it is answered."""
