"""How other tools write conversations down: one module per family of formats, all read into the same values."""
