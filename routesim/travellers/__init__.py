"""Travellers: contexts, features of roads and travellers, and what a trip costs whom."""
