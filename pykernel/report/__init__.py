"""Show a result as one HTML file that needs no network, or in a notebook.

``document`` defines the tree that represents a result, ``figures`` draws figures, and ``page`` has the style.  The other modules turn
results into documents.
"""
