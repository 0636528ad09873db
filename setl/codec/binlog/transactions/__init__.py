"""Where transactions begin and end, who wrote them, and how they are named."""
