"""Results of other tools, with their scores: `evalstone.import_results`."""
