"""How results are shown: `view` of a result says what it shows; terminals, text, HTML and Markdown lay out any view.

Each name is imported on first use, so that no renderer's library is loaded before it is used.
"""

from evalstone._core.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__, __file__)
