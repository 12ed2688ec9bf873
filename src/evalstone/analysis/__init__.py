"""What runs say when they are looked at together: comparison, gates, slices, labels, planning."""
