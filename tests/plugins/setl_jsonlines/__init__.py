"""A target that setl does not bring: a folder with a file of JSON lines for each table.

It is as small as a target can be, and shows what one has to do; see docs, "Contribute".
"""
