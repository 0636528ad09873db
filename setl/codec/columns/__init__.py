"""Rows by column, of whatever format: what is found among them, taken from them and given on."""
