"""Scorers of agents: their tool calls, their steps, and what they say over a conversation."""
