"""Dead letters: faulty rows, kept beside the target until somebody decides about them."""
