"""What is measured of a pipeline that runs: lag, pace, counts, and what is told of them."""
