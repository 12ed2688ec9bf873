"""The formats in which other tools store conversations: one module per family, all read into the same values."""
