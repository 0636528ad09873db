"""What an operator asks for: check, plan, peek, positions, verify and cut-over."""
