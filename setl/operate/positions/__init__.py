"""What operators ask about the positions and epochs of a pipeline, and how they change them."""
