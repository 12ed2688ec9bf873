"""One way to show a result: `view` says what it shows; terminals, text, HTML and Markdown lay out any view.

Nothing is imported here, so that no renderer's library is loaded before it is used.
"""
