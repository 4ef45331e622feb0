"""Storage: files and folders written whole or not at all, states as plain arrays, checkpoints."""
