"""How good a judge is: calibration with human labels, and audits."""
