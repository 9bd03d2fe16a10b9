"""A result as one HTML file that needs no network, and in a notebook.

``document`` has what is told, as a tree, ``figures`` its figures, ``page`` the style; the other modules make documents of results.
"""
