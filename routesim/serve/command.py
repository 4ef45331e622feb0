"""The command `routesim serve`: a scenario's learner behind HTTP, on this machine unless told otherwise."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    import socket

_TOKEN = "ROUTESIM_TOKEN"  # noqa: S105 - the name of a variable
_SHORTEST, _LONGEST = 16, 256
ANYWHERE = ("0.0.0.0", "::")  # noqa: S104 - named here to be told apart, not bound to


def serve(
    name_or_file: Annotated[str, typer.Argument(help="A named scenario of kind city, or a TOML file.")],
    host: Annotated[str, typer.Option(help="Address to listen on; other machines reach only some.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")] = 8000,
    state: Annotated[Path | None, typer.Option(help="Folder of the state; by default state/NAME.")] = None,
    learner: Annotated[str | None, typer.Option(help="The learner; by default the first that is not informed.")] = None,
    name: Annotated[list[str] | None, typer.Option(help="Another host name to answer for; may be repeated.")] = None,
    pairs: Annotated[int, typer.Option(min=1, max=10_000, help="Origin-destination pairs to keep a learner for.")] = 64,
    keep_rows: Annotated[
        int, typer.Option(min=1_000, help="Recommendations and observations to keep once a snapshot covers them.")
    ] = 1_000_000,
    token_file: Annotated[
        Path | None, typer.Option(help="File with the token that writing needs; or set ROUTESIM_TOKEN.")
    ] = None,
) -> None:
    """Answer recommend and observe over HTTP, with a page to click on."""
    from routesim.errors import RoutesimError
    from routesim.serve.served import load_served

    try:
        import uvicorn

        from routesim.serve.app import make_app
        from routesim.serve.door import Limits, fitting, make_door
        from routesim.serve.service import Service
    except ImportError as missing:
        raise RoutesimError(f"serving needs {missing.name}; install it with: pip install 'routesim[serve]'") from None

    token = _token(token_file)
    served = load_served(name_or_file, learner)
    connections, waiting = fitting()
    limits = Limits(connections)
    listening = _listen(host, port, waiting)
    folder = state or Path("state") / Path(name_or_file).stem
    service = Service(served, folder, most_pairs=pairs, keep_rows=keep_rows)
    service.warm_up()
    address, taken = listening.getsockname()[:2]
    shown = f"[{address}]" if ":" in address else address
    typer.echo(f"{served.title}: {served.learner_label}")
    typer.echo(f"{service.desk.recommended} recommendations and {service.desk.observed} observations in {folder}")
    if token is not None:
        typer.echo("writing needs the token")
    typer.echo(f"open http://{shown}:{taken}/ (stop with Ctrl-C)")
    hosts = {*(name or ()), "127.0.0.1", "localhost", "::1", *({host, address} - {*ANYWHERE})}
    config = uvicorn.Config(
        make_app(service, hosts, token=token),
        http=make_door(limits),
        h11_max_incomplete_event_size=limits.head_bytes,
        backlog=waiting,
        log_level="warning",
        access_log=False,
        server_header=False,
        ws="none",
        timeout_keep_alive=30,
    )
    uvicorn.Server(config).run(sockets=[listening])


def rescue(
    state: Annotated[Path, typer.Argument(metavar="STATE_FOLDER", help="A state folder of `routesim serve`.")],
    out: Annotated[Path, typer.Option(help="New folder for what can be saved.")],
) -> None:
    """Save what can be saved of a damaged state, or take over that of an earlier version."""
    from routesim.serve.rescue import rescue as save

    for line in save(state, out).lines():
        typer.echo(line)
    typer.echo(f"serve it with: routesim serve SCENARIO --state {out}")


def _token(file: Path | None) -> str | None:
    """Return the token for writing, from a file or the environment, never from the command line; None for none."""
    import os

    from routesim.errors import InputError

    if file is None:
        text, where = os.environ.get(_TOKEN), f"the environment variable {_TOKEN}"
        if text is None:
            return None
    else:
        where = str(file)
        try:
            with file.open("rb") as opened:
                text = opened.read(_LONGEST + 2).decode("latin-1").strip()
        except OSError as problem:
            raise InputError(f"cannot read the token from {file}: {problem.strerror or problem}") from None
    if not (_SHORTEST <= len(text) <= _LONGEST and text.isascii() and text.isprintable() and " " not in text):
        rule = f"{_SHORTEST} to {_LONGEST} printable ASCII characters without spaces"
        raise InputError(f"a token has {rule}; {where} has no such token")
    return text


def _listen(host: str, port: int, waiting: int) -> "socket.socket":
    """Return a socket that waits for connections, or say why there can be none."""
    import socket

    from routesim.errors import InputError

    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(waiting)
    except OSError as problem:
        reason = problem.strerror or problem
        raise InputError(f"cannot listen on {host} port {port}: {reason}; give another with --port") from None
    return listening
