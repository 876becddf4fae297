"""`python -m protokube` is the same as `protokube`."""

from protokube.cli.main import main

if __name__ == "__main__":
    main()
