"""A result as one HTML file that needs no network, and in a notebook.

``document`` is the tree of what is shown, ``figures`` draws figures, ``page`` has the style.  The other modules make documents of results.
"""
