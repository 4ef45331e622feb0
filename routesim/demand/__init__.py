"""Demand: who travels from where to where and when, from tables, files and the bundled cities."""
