"""A result as one HTML file that needs no network, and in a notebook.

``page`` has what a report is made of, ``figures`` its figures; ``sections`` makes reports of what commands found.
"""
