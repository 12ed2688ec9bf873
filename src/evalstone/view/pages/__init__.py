"""The pages: what each shows, and the data beside it. A module a page."""
