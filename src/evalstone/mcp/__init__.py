"""Saved runs and single scores for agents, over the Model Context Protocol."""
