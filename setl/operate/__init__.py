"""What an operator asks for: check, peek, positions and verify."""
