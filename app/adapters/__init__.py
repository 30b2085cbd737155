"""The only code that touches the outside: one module an outside thing."""
