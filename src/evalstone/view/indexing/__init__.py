"""The indexes that pages read: one SQLite file for each run."""
