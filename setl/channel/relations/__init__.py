"""What pipelines and channels mean for each other: who reads what others write."""
