"""The command `routesim serve`: a scenario's learner behind HTTP, on this machine unless told otherwise."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    import socket

ANYWHERE = ("0.0.0.0", "::")  # noqa: S104 - named here to be told apart, not bound to


def serve(
    name_or_file: Annotated[str, typer.Argument(help="A named scenario of kind city, or a TOML file.")],
    host: Annotated[str, typer.Option(help="Address to listen on; other machines reach only some.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")] = 8000,
    state: Annotated[Path | None, typer.Option(help="Folder of the state; by default state/NAME.")] = None,
    learner: Annotated[str | None, typer.Option(help="The learner; by default the first that is not informed.")] = None,
    name: Annotated[list[str] | None, typer.Option(help="Another host name to answer for; may be repeated.")] = None,
    pairs: Annotated[int, typer.Option(min=1, max=10_000, help="Pairs of ends to learn about at most.")] = 64,
) -> None:
    """Answer recommend and observe over HTTP, with a page to click on."""
    from routesim.errors import RoutesimError
    from routesim.serve.served import load_served

    try:
        import uvicorn

        from routesim.serve.app import make_app
        from routesim.serve.service import Service
    except ImportError as missing:
        raise RoutesimError(f"serving needs {missing.name}; install it with: pip install 'routesim[serve]'") from None

    served = load_served(name_or_file, learner)
    listening = _listen(host, port)
    folder = state or Path("state") / Path(name_or_file).stem
    service = Service(served, folder, most_pairs=pairs)
    service.warm_up()
    address, taken = listening.getsockname()[:2]
    shown = f"[{address}]" if ":" in address else address
    typer.echo(f"{served.title}: {served.learner_label}")
    typer.echo(f"{service.desk.recommended} recommendations and {service.desk.observed} observations in {folder}")
    typer.echo(f"open http://{shown}:{taken}/ (stop with Ctrl-C)")
    hosts = {*(name or ()), "127.0.0.1", "localhost", "::1", *({host, address} - {*ANYWHERE})}
    config = uvicorn.Config(
        make_app(service, hosts),
        log_level="warning",
        access_log=False,
        server_header=False,
        ws="none",
        limit_concurrency=2048,
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


def _listen(host: str, port: int) -> "socket.socket":
    """Return a socket that waits for connections, or say why there can be none."""
    import socket

    from routesim.errors import InputError

    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(2048)
    except OSError as problem:
        reason = problem.strerror or problem
        raise InputError(f"cannot listen on {host} port {port}: {reason}; give another with --port") from None
    return listening
