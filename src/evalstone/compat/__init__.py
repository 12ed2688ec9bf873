"""Other evaluation tools: the interface of Spring AI (`evalstone.compat.spring`), and results to import."""
