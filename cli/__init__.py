"""The `horde` command: readable tables for people, `--json` for scripts."""
