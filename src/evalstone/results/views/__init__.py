"""What each result shows, as a `View`, and its data as CSV and JUnit files."""
