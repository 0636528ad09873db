"""Extract: which entries of a batch are rows to apply, decided from headers alone."""
