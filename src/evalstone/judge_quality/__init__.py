"""How far to trust a judge: calibration against human labels, and an audit of what affects its scores."""
