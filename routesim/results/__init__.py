"""Results: what happened in runs and in traffic, each figure worked out in one place."""
