// A map of one learner: roads, recommended routes as bands, loads in colour, ends, numbers and layers.
"use strict";
const Maps = (() => {
  const {make} = Words;
  const BANDS = 20;
  const LEAST_BAND = 0.002, LEAST_BADGE = 0.01, LEAST_WIDEST = 0.02;
  const TILES = "https://tile.openstreetmap.org/{z}/{x}/{y}.png";
  const CREDIT = '&copy; <a href="https://www.openstreetmap.org/copyright">OpenStreetMap</a> contributors';

  // The share of what was recommended that passes over each edge in a step.
  function shareOfEdges(page, learner, step) {
    const count = page.routes.length, sums = new Float32Array(page.edges);
    const shares = page.bulk[`shares${learner}`].subarray(step * count, (step + 1) * count);
    page.routes.forEach((of, i) => { for (const edge of of) sums[edge] += shares[i]; });
    return {shares, sums};
  }

  // The share that the widest band stands for: where trips go everywhere, no route has more than a few of them.
  function widest(page) {
    let most = LEAST_WIDEST;
    page.data.learners.forEach((_, learner) => page.data.stepEnds.forEach((_end, step) => {
      for (const sum of shareOfEdges(page, learner, step).sums) most = Math.max(most, sum);
    }));
    return most;
  }

  // `page` is what all parts of the page share; `views` the maps made so far.
  function view(page, map, side, views) {
    const {data, bulk, state} = page;
    const classStyles = () => data.classes.map((one) => [one.width, page.dark() ? one.dark : one.light]);
    const bandStyles = () => Array.from({length: BANDS + 1}, (_, level) => [5 + 19 * level / BANDS, Roads.colour("--band")]);
    const renderer = L.canvas({padding: 0.1, tolerance: 0});
    const backdrop = Roads.backdrop(map, page.roads);
    const bands = new Roads.Lines(page.edgeLines, bandStyles(), {renderer, interactive: false});
    const loads = new Roads.Lines(page.edgeLines, classStyles(), {renderer, interactive: true});
    const picked = L.polyline([], {renderer, interactive: false, weight: 3, dashArray: "2 7"});
    const road = L.polyline([], {renderer, interactive: false, weight: 11, opacity: 0.55});
    const badges = L.layerGroup();
    const routesLayer = L.layerGroup([bands, badges]);
    const overlays = {Roads: backdrop, "Recommended routes": routesLayer, Loads: loads};
    const queues = data.queues ? new Queues.Tails(page.edgeLines, Queues.tailStyles(), {renderer, interactive: false}) : null;
    const waiting = data.queues ? new Queues.Rings(page.edgeLines, Queues.ringStyles(), {renderer, interactive: false}) : null;
    const stood = {full: new Uint8Array(page.edges), queues: new Uint8Array(page.edges), waiting: new Uint8Array(page.edges)};
    if (data.queues) Object.assign(overlays, {Queues: queues, "Waiting to enter": waiting});
    const top = [loads, queues, waiting, road, picked].filter(Boolean);
    if (data.located) overlays["OpenStreetMap tiles (asks the network)"] = L.tileLayer(TILES, {maxZoom: 19});

    if (window.matchMedia("(prefers-reduced-motion: reduce)").matches) {
      map._zoomAnimated = false;
      map.options.inertia = false;
    }
    map.attributionControl.setPrefix("");
    // Leaflet reads a credit as markup: the innerHTML of plain text is that text, escaped.
    const credit = make("span", data.credit || (data.schematic ? "Schematic: places are made up" : "")).innerHTML;
    if (data.openStreetMap || credit) map.attributionControl.addAttribution(data.openStreetMap ? CREDIT : credit);
    const [south, west, north, east] = data.bounds;
    map.invalidateSize({pan: false});
    map.fitBounds([[south, west], [north, east]], {paddingTopLeft: [48, 24], paddingBottomRight: [58, 30], animate: false});
    // On one canvas what comes last lies on top.
    for (const layer of [backdrop, routesLayer, ...top]) layer.addTo(map);
    if (!data.schematic) L.control.scale({imperial: false, position: "bottomleft"}).addTo(map);
    L.control.layers({}, overlays, {collapsed: true, position: "topright"}).addTo(map);

    const mark = (at, made, size, options) => L.marker(at, {
      icon: L.divIcon({html: made, className: "", iconSize: size}), keyboard: false, ...options,
    });
    data.ends.forEach((pair, number) => {
      // Several pairs are numbered, as their routes are.
      const which = data.ends.length > 1 ? String(number + 1) : "";
      for (const [end, letter] of [["origin", "A"], ["destination", "B"]]) {
        const sign = make("div", letter + which, `end ${end}`);
        const title = which ? `${end} ${which}` : end;
        mark(pair[end], sign, [24, 24], {title, alt: title, zIndexOffset: 500}).addTo(map);
      }
    });
    const isEnd = (lat, lng) => data.ends.some((pair) =>
      Object.values(pair).some((at) => Math.hypot(at[0] - lat, at[1] - lng) < 1e-4));
    for (const [lat, lng, label] of data.nodes) {
      if (!isEnd(lat, lng)) mark([lat, lng], make("div", label, "node"), [0, 0], {interactive: false}).addTo(map);
    }
    const marks = data.routes.map((route, i) => {
      if (!route.badge) return null;
      const sign = make("div", String(i + 1), "badge off");
      mark(route.badge, sign, [20, 18]).on("click", () => page.pickRoute(state.route === i ? -1 : i)).addTo(badges);
      return sign;
    });

    const tip = make("span");
    loads.bindTooltip(() => tip, {sticky: true, direction: "top", offset: [0, -6]});
    loads.on("mousemove mouseover click", () => { tip.textContent = data.names[bulk.edgeName[loads.hit]]; });
    loads.on("click", () => page.pickEdge(loads.hit));
    const lift = () => { for (const layer of top) if (map.hasLayer(layer)) layer.bringToFront(); };
    map.on("overlayadd overlayremove", (event) => {
      lift();
      const other = views[1 - side];
      if (!other) return;
      const layer = other.overlays[event.name], add = event.type === "overlayadd";
      if (add !== other.map.hasLayer(layer)) other.map[add ? "addLayer" : "removeLayer"](layer);
    });

    // Show the loads and the shares of the step; only what changed is painted again.
    const levels = new Uint8Array(page.edges);
    function paint() {
      const learner = state.shown[side], edges = page.edges;
      const {shares, sums} = shareOfEdges(page, learner, state.step);
      for (let i = 0; i < edges; i += 1) {
        const part = sums[i] / page.widest;
        levels[i] = part < LEAST_BAND ? 255 : Math.min(BANDS, Math.round(BANDS * part));
      }
      marks.forEach((sign, i) => { if (sign) sign.classList.toggle("off", shares[i] < LEAST_BADGE && state.route !== i); });
      bands.setLevels(levels);
      const classes = bulk[`classes${learner}`].subarray(state.step * edges, (state.step + 1) * edges);
      if (data.queues) {
        Queues.levels(page, learner, state.step, stood);
        queues.setLevels(stood.queues);
        waiting.setLevels(stood.waiting);
      }
      loads.setLevels(state.full ? stood.full : classes);
    }
    function recolour() {
      backdrop.recolour();
      loads.setStyles(classStyles());
      bands.setStyles(bandStyles());
      if (data.queues) {
        queues.setStyles(Queues.tailStyles());
        waiting.setStyles(Queues.ringStyles());
      }
      picked.setStyle({color: Roads.colour("--pick")});
      road.setStyle({color: Roads.colour("--accent")});
    }
    function highlight(route) {
      picked.setLatLngs(route < 0 ? [] : Array.from(page.routes[route]).map((edge) => page.edgeLines[edge]));
      lift();
      marks.forEach((sign, i) => { if (sign) sign.classList.toggle("picked", i === route); });
    }
    const showRoad = (edge) => road.setLatLngs(edge < 0 ? [] : [page.edgeLines[edge]]);

    return {map, overlays, backdrop, bands, loads, queues, waiting, picked, paint, recolour, highlight, showRoad};
  }

  return {view, widest};
})();
