"""The pure rules: arguments in, values out. No framework, no clock, no I/O."""
