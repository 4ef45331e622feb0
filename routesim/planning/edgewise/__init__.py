"""Plans made edge by edge, with a proven bound, for any number of actions and any window."""
