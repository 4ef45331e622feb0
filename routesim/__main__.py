"""The command `routesim`, also as `python -m routesim`: Ctrl-C is a clean line from the first moment on."""

import atexit
import contextlib
import os
import sys

_INTERRUPTED = 130


def main() -> None:
    """Run the command line and end with its exit code."""
    try:
        from routesim.cli import exit_code

        code = exit_code()
    except KeyboardInterrupt:
        sys.stderr.write("routesim: stopped\n")
        code = _INTERRUPTED
    if code == _INTERRUPTED:
        # Where Ctrl-C came while a library ran code of its own, as pydantic does when it is imported, Python would end
        # as if nobody had caught it, whatever the exit code.
        atexit._run_exitfuncs()  # there is no other way to run them
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


if __name__ == "__main__":
    main()
