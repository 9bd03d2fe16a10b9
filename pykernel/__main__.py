"""The command pykernel, also as python -m pykernel."""

import sys

from pykernel.errors import UNWRITTEN


def main() -> None:
    """Run the command.  It takes half a second to load, and an interrupt in this time ends in the usual sentence, too."""
    try:
        from pykernel.cli import app
    except KeyboardInterrupt:
        print(f"error: interrupted{UNWRITTEN}", file=sys.stderr)
        sys.exit(130)
    app.main()


if __name__ == "__main__":
    main()
