"""Other evaluation tools: the interface of Spring AI (`evalstone.compat.spring`), their results and configurations."""
