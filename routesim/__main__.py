"""The command `routesim`, also as `python -m routesim`: Ctrl-C is a clean line from the first moment on."""

import sys


def main() -> None:
    """Run the command line and end with its exit code."""
    try:
        from routesim.cli import exit_code

        code = exit_code()
    except KeyboardInterrupt:
        sys.stderr.write("routesim: stopped\n")
        code = 130
    sys.exit(code)


if __name__ == "__main__":
    main()
