"""Reports: what results say (`run_view` and its like), laid out for terminals, HTML, Markdown, CSV and build servers.

A view says everything once. `terminal.show`, `html.page` and `markdown.lines` lay out any view; `csv` and `junit` write
data. Nothing is imported here, so that no renderer's library is loaded before it is used.
"""
