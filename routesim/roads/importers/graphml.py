"""GraphML, as osmnx, networkx and routesim write it -> RoadNetwork, and back."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from routesim.errors import NetworkError
from routesim.roads.importers.files import existing_file, reads_files
from routesim.roads.importers.graph import Edge, edge_data, graph_data, network_from_records, node_data
from routesim.roads.importers.labels import decode_label, encode_label
from routesim.roads.importers.safexml import Halt, read_xml
from routesim.roads.network import RoadNetwork
from routesim.storage.files import whole_file

_MAX_KEYS = 1000
_MAX_VALUES = 1000
_LONGEST_VALUE = 2**23
_WHOLE = re.compile(r"-?(?:0|[1-9][0-9]{0,17})", re.ASCII)
# A quotation that is not closed reaches to the end: were it looked for at every quotation mark, the time would grow
# with the square of the length.
_LIST_ITEM = re.compile(
    r"""'((?:[^'\\]++|\\.)*+)(?:'|\\?\Z)|"((?:[^"\\]++|\\.)*+)(?:"|\\?\Z)|([^\s,\[\]'"]+)""", re.DOTALL
)
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


@reads_files
def from_graphml(
    path: str | Path,
    *,
    largest_component: bool = False,
    name: str | None = None,
    max_bytes: int | None = None,
) -> RoadNetwork:
    """Read a GraphML file with the attributes `from_networkx` knows.

    Node ids that are whole numbers throughout become integers, as osmnx reads them; others stay texts. Values
    osmnx wrote as lists ("['50', '30']") are read as such. All nodes and edges of the file are kept unless
    `largest_component` is True.
    """
    file = existing_file(path, "GraphML")
    document = _Document(str(file))
    read_xml(file, document.start, document.end, document.text, max_bytes=max_bytes)
    try:
        network = document.network(name)
    except NetworkError as error:
        raise NetworkError(f"{file}: {error}") from None
    return network.largest_component() if largest_component else network


class _Document:
    """Collects a GraphML file's keys, nodes and edges while it is read."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.root = ""
        self.keys: dict[str, tuple[str, str]] = {}
        self.graph: dict[str, Any] = {}
        self.nodes: dict[str, dict[str, Any]] = {}
        self.edges: list[tuple[str, str, str | None, dict[str, Any]]] = []
        self.directed: bool | None = None
        self.owners: list[dict[str, Any]] = []
        self.key: str | None = None
        self.pieces: list[str] = []
        self.length = 0

    def start(self, qualified: str, attributes: dict[str, str]) -> None:
        tag = qualified.rpartition(":")[2]
        if not self.root:
            self.root = tag
            if tag != "graphml":
                raise Halt(f"the file must hold <graphml>, got <{tag:.40}>")
        elif tag == "key":
            if len(self.keys) >= _MAX_KEYS:
                raise Halt(f"more than {_MAX_KEYS} <key> elements, which no road network needs")
            self.keys[_needed(attributes, "id", tag)] = (
                attributes.get("attr.name", attributes.get("id", "")),
                attributes.get("attr.type", "string"),
            )
        elif tag == "graph":
            if self.directed is not None:
                raise Halt("a second or nested <graph>; a file of roads holds one")
            self.directed = attributes.get("edgedefault", "directed") != "undirected"
            self.owners.append(self.graph)
        elif tag == "node":
            node = _needed(attributes, "id", tag)
            if node in self.nodes:
                raise Halt(f"node {node!r:.60} a second time")
            self.nodes[node] = {}
            self.owners.append(self.nodes[node])
        elif tag == "edge":
            if attributes.get("directed", "true" if self.directed else "false") != (
                "true" if self.directed else "false"
            ):
                raise Halt("directed and undirected edges in one graph, which is not supported")
            ends = _needed(attributes, "source", tag), _needed(attributes, "target", tag)
            self.edges.append((*ends, attributes.get("id"), {}))
            self.owners.append(self.edges[-1][3])
        elif tag == "data":
            self.key = _needed(attributes, "key", tag)
            self.pieces, self.length = [], 0

    def text(self, text: str) -> None:
        if self.key is not None:
            self.pieces.append(text)
            self.length += len(text)
            if self.length > _LONGEST_VALUE:
                raise Halt(f"a value longer than {_LONGEST_VALUE} characters")

    def end(self, qualified: str) -> None:
        tag = qualified.rpartition(":")[2]
        if tag == "data" and self.key is not None:
            if self.key not in self.keys:
                raise Halt(f"<data> with key {self.key!r:.60}, which no <key> declares")
            if self.owners:
                attribute, kind = self.keys[self.key]
                if len(self.owners[-1]) >= _MAX_VALUES:
                    raise Halt(f"more than {_MAX_VALUES} values on one element")
                self.owners[-1][attribute] = _value("".join(self.pieces), kind, attribute)
            self.key = None
        elif tag in {"graph", "node", "edge"} and self.owners:
            self.owners.pop()

    def network(self, name: str | None) -> RoadNetwork:
        if self.directed is None or not self.nodes:
            raise NetworkError("it holds no graph with nodes")
        own = self.graph.get("created_with") == "routesim"
        labels = self._labels(own)
        index = {node: i for i, node in enumerate(self.nodes)}
        edges = []
        for source, target, key, data in self.edges:
            for end in (source, target):
                if end not in index:
                    raise NetworkError(f"edge {source!r:.60} to {target!r:.60}: there is no node {end!r:.60}")
            if not own:
                data = {attribute: _listed(value) for attribute, value in data.items()}
            elif _WHOLE.fullmatch(str(data.get("edge_index", ""))):
                data["edge_index"] = int(data["edge_index"])
            number = int(key) if key is not None and _WHOLE.fullmatch(key) else key
            edges.append(Edge(index[source], index[target], number, data, 0 if self.directed else 1))
            if not self.directed and source != target:
                edges.append(Edge(index[target], index[source], number, data, -1))
        return network_from_records(labels, list(self.nodes.values()), edges, self.graph, name=name)

    def _labels(self, own: bool) -> list[Hashable]:
        if own:
            return [
                decode_label(data.get("label", "")) if isinstance(data.get("label"), str) else node
                for node, data in self.nodes.items()
            ]
        if all(_WHOLE.fullmatch(node) for node in self.nodes):
            return [int(node) for node in self.nodes]
        return list(self.nodes)


def _needed(attributes: dict[str, str], key: str, tag: str) -> str:
    if key not in attributes:
        raise Halt(f"<{tag}> without {key}")
    return attributes[key]


def _value(text: str, kind: str, attribute: str) -> Any:
    try:
        if kind in {"int", "long"}:
            return int(text)
        if kind in {"float", "double"}:
            return float(text)
    except ValueError:
        raise Halt(f"{attribute} is declared {kind}, got {text!r:.60}") from None
    return text.strip().lower() in {"true", "1"} if kind == "boolean" else text


def _listed(value: Any) -> Any:
    """Read a list that osmnx wrote as text."""
    if not isinstance(value, str) or not (value.startswith("[") and value.endswith("]")):
        return value
    found = _LIST_ITEM.finditer(value[1:-1])
    return [next(group for group in item.groups() if group is not None).replace("\\'", "'") for item in found]


def to_graphml(network: RoadNetwork, path: str | Path) -> None:
    """Write a network so that `from_graphml` gives the same one back, and osmnx and networkx can read it."""
    with whole_file(path, NetworkError) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as stream:
        stream.writelines(_lines(network))


def _lines(network: RoadNetwork) -> Iterator[str]:
    nodes, edges = node_data(network), edge_data(network)
    for data, label in zip(nodes, network.labels, strict=True):
        data["label"] = encode_label(label)
    for e, data in enumerate(edges):
        points = network.shape_xy[network.shape_offsets[e] : network.shape_offsets[e + 1]].tolist()
        if points:
            data["geometry"] = f"LINESTRING ({', '.join(f'{x!r} {y!r}' for x, y in points)})"
    groups = {"graph": [graph_data(network)], "node": nodes, "edge": edges}
    for attribute, n_rows in (("signal_times", len(network.signal_times)), ("banned_turns", len(network.bans))):
        if len(groups["graph"][0].get(attribute, "")) > _LONGEST_VALUE:
            raise NetworkError(f"GraphML holds no {attribute} of {n_rows} rows; save the network as .npz")
    keys: dict[tuple[str, str], str] = {}
    for group, rows in groups.items():
        for attribute in dict.fromkeys(attribute for data in rows for attribute in data):
            keys[group, attribute] = f"d{len(keys)}"
    yield "<?xml version='1.0' encoding='utf-8'?>\n"
    yield '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
    for (group, attribute), key in keys.items():
        # osmnx expects every value to be a text and knows itself which are numbers.
        yield f'<key id="{key}" for="{group}" attr.name="{attribute}" attr.type="string"/>\n'
    yield '<graph edgedefault="directed">\n'

    def values(group: str, data: dict[str, Any]) -> str:
        return "".join(
            f'<data key="{keys[group, attribute]}">{_xml(value)}</data>' for attribute, value in data.items()
        )

    yield values("graph", groups["graph"][0]) + "\n"
    ids = [str(label) for label in network.labels]
    if len(set(ids)) < len(ids):
        ids = [f"n{i}" for i in range(len(ids))]
    quoted = [quoteattr(_checked(node)) for node in ids]
    for node, data in zip(quoted, nodes, strict=True):
        yield f"<node id={node}>{values('node', data)}</node>\n"
    ends = zip(network.tails.tolist(), network.heads.tolist(), network.keys.tolist(), edges, strict=True)
    for tail, head, number, data in ends:
        ends_text = f'source={quoted[tail]} target={quoted[head]} id="{number}"'
        yield f"<edge {ends_text}>{values('edge', data)}</edge>\n"
    yield "</graph></graphml>\n"


def _xml(value: Any) -> str:
    # A carriage return would come back as a line feed unless it is written as a character reference.
    return escape(_checked(str(value)), {"\r": "&#13;"})


def _checked(text: str) -> str:
    if _NOT_XML.search(text):
        raise NetworkError(f"XML cannot hold the text {text!r:.80}; remove its control characters first")
    return text
