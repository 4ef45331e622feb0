"""Learners: observations -> estimated rewards -> a plan; and the baselines they are judged against."""
