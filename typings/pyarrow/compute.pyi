# What setl uses of pyarrow.compute, whose own functions are made when it is imported.

from pyarrow import Array

def replace_substring(strings: Array, pattern: bytes, replacement: bytes) -> Array: ...
