"""Commands about channel files: write, check, plan, apply, start, stop."""
