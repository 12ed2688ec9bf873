"""The configurations of other tools as datasets, targets and scorers."""
