"""Commands that change who leads, or to which side applications write."""
