"""Scenarios: a TOML file, or the name of a bundled one -> typed frozen values."""
