"""Place, OSM file, GraphML, networkx, TNTP, GMNS and routesim's own files -> RoadNetwork."""
