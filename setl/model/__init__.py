"""Values that travel between the stages. Imports nothing else of ours, holds no connections."""
