"""What people do from the console; each does what a command does."""
