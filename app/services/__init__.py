"""One verb a module: each owns its transaction and is the only writer of what it changes."""
