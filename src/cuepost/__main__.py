"""`python -m cuepost` is `cuepost`."""

from cuepost.bootstrap import main

if __name__ == "__main__":
    main()
