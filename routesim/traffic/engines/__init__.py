"""Engines: what congestion does to vehicles on the roads."""
