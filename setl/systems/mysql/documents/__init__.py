"""Documents that are made of several tables' rows, looked up in the server that these come from."""
