"""Running an evaluation: samples x scorers, each question asked once, concurrently and durably."""
