"""The cluster as a whole, for the commands that show it and for the console."""
