"""Stands for Spark's partitions: each is given to the function in turn, in this process."""


class Partitions:
    """What `parallelize` gives, with a single element in each partition."""

    def __init__(self, parts):
        self.parts = parts

    def mapPartitionsWithIndex(self, function):  # noqa: N802 - Spark's name
        self.function = function
        return self

    def collect(self):
        return [each for i, part in enumerate(self.parts) for each in self.function(i, [part])]
