"""Pages over saved runs, for one person on one machine: what `evalstone view` serves."""
