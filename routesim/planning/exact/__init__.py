"""Exact plans over all joint histories."""
