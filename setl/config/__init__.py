"""Channel files: typed, validated as a whole, and checked against the real servers."""
