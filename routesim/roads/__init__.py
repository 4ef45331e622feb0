"""Roads: the network, its graph, shortest paths and candidate paths on it, importers and bundled cities."""
