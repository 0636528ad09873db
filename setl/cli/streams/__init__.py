"""Commands about where in its stream a pipeline is: peek, position, wait."""
