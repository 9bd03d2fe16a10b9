"""Show a result as one HTML file that needs no network, or in a notebook.

``document`` has the tree of what is shown, ``figures`` draws figures, ``page`` has the style.  The other modules turn results into documents.
"""
