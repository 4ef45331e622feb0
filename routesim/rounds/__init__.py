"""Rounds: the paper's protocol of actions, a window of past actions, and noisy rewards by edge and count."""
