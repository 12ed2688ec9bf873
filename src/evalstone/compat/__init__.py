"""The interfaces of other evaluation tools: `evalstone.compat.spring`."""
