"""python -m pykernel"""

from pykernel.cli import main

if __name__ == "__main__":
    main()
