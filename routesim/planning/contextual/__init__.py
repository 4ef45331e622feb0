"""Plans for rounds with contexts."""
