// The page: two maps of one record in time, its curves, its routes, and a road's history.
// Every text from outside is put in as textContent, never as markup.
"use strict";
const Page = (() => {
  const $ = (id) => document.getElementById(id);
  const known = Charts.known;
  const root = document.documentElement;
  const still = window.matchMedia("(prefers-reduced-motion: reduce)");

  function make(tag, text, className) {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (className) made.className = className;
    return made;
  }

  const digits = (value, most = 4) => value.toLocaleString("en", {maximumSignificantDigits: most});
  const percent = (share) => (share > 0 && share < 0.0005 ? "< 0.1 %" : `${(100 * share).toFixed(share < 0.1 && share > 0 ? 1 : 0)} %`);
  const clockTime = (seconds) => {
    const whole = Math.round(seconds), pad = (n) => String(n).padStart(2, "0");
    return `${Math.floor(whole / 3600)}:${pad(Math.floor(whole / 60) % 60)}${whole % 60 ? `:${pad(whole % 60)}` : ""}`;
  };
  const metres = (value) => (value >= 1000 ? `${(value / 1000).toFixed(value >= 9950 ? 0 : 1)} km` : `${Math.round(value)} m`);
  const seconds = (value) => (value >= 600 ? `${(value / 60).toFixed(1)} min` : `${digits(value, value >= 100 ? 3 : 2)} s`);

  async function start(maps) {
    if (typeof DecompressionStream === "undefined") {
      $("notice").textContent = "This browser is too old to unpack the page; please open it with one from 2023 or later.";
      $("notice").hidden = false;
      return;
    }
    const data = JSON.parse($("data").textContent);
    const bulk = await Roads.unpack($("bulk").textContent, data.sections);
    show(maps, data, bulk);
    root.dataset.ready = "yes";
  }

  function show(maps, data, bulk) {
    const steps = data.stepEnds.length, edges = bulk.edgeName.length, rounds = data.clock === "rounds";
    const roads = ["roads0", "roads1", "roads2"].map((name) => Roads.lines(bulk[name]));
    const edgeLines = Roads.lines(bulk.edgeLines);
    const routes = data.routes.map((route, i) => bulk.routeEdges.subarray(bulk.routeStarts[i], bulk.routeStarts[i + 1]));
    const routeLine = (i) => Array.from(routes[i]).map((edge) => edgeLines[edge]);
    const state = {step: data.step, shown: data.shown.slice(), edge: -1, route: -1, hidden: new Set(), timer: null};
    const value = (number) => (data.arms ? digits(number) : seconds(number));
    const stepName = (i) => {
      const first = i ? data.stepEnds[i - 1] : 0, last = data.stepEnds[i];
      if (rounds) return `rounds ${(first + 1).toLocaleString("en")} to ${last.toLocaleString("en")}`;
      return `${clockTime(first)} to ${clockTime(last)}`;
    };
    const formatX = (x) => (rounds ? x.toLocaleString("en", {notation: x >= 10000 ? "compact" : "standard"}) : clockTime(x));
    const dark = () => root.dataset.theme === "dark";
    const curveColour = (i) => data.learners[i][dark() ? "dark" : "light"];
    const spans = data.stepEnds.map((end, i) => end - (i ? data.stepEnds[i - 1] : 0));
    const log = rounds && spans[steps - 1] > 8 * spans[0];

    // ---- maps --------------------------------------------------------------------------------------------------
    const classStyles = () => data.classes.map((one) => [one.width, dark() ? one.dark : one.light]);
    const BANDS = 20;
    const bandWidth = (level) => 5 + 19 * level / BANDS;
    const bandStyles = () => Array.from({length: BANDS + 1}, (_, level) => [bandWidth(level), Roads.colour("--band")]);
    const views = maps.map((map, side) => view(map, side));
    if (maps.length === 2) Roads.synchronise(maps);

    function view(map, side) {
      const renderer = L.canvas({padding: 0.25, tolerance: 0});
      const backdrop = Roads.backdrop(map, roads);
      const bands = new Roads.Lines(edgeLines, bandStyles(), {renderer, interactive: false});
      const loads = new Roads.Lines(edgeLines, classStyles(), {renderer, interactive: true});
      const picked = L.polyline([], {renderer, interactive: false, weight: 3, dashArray: "2 7"});
      const road = L.polyline([], {renderer, interactive: false, weight: 11, opacity: 0.55});
      const badges = L.layerGroup();
      const routesLayer = L.layerGroup([bands, badges]);
      const overlays = {Roads: backdrop, "Recommended routes": routesLayer, Loads: loads};
      if (data.located) {
        overlays["OpenStreetMap tiles (asks the network)"] = L.tileLayer("https://tile.openstreetmap.org/{z}/{x}/{y}.png", {
          maxZoom: 19, attribution: "",
        });
      }
      map.attributionControl.setPrefix("");
      if (data.openStreetMap) {
        map.attributionControl.addAttribution('&copy; <a href="https://www.openstreetmap.org/copyright">OpenStreetMap</a> contributors');
      } else {
        const plain = make("span", data.credit || (data.schematic ? "Schematic: places are made up" : ""));
        if (plain.textContent) map.attributionControl.addAttribution(plain.innerHTML);
      }
      const [south, west, north, east] = data.bounds;
      map.fitBounds([[south, west], [north, east]], {paddingTopLeft: [48, 24], paddingBottomRight: [58, 30], animate: false});
      for (const layer of [backdrop, bands, loads, road, picked]) layer.addTo(map);
      map.removeLayer(bands);
      routesLayer.addTo(map);
      for (const layer of [loads, road, picked]) layer.bringToFront();
      if (!data.schematic) L.control.scale({imperial: false, position: "bottomleft"}).addTo(map);
      L.control.layers({}, overlays, {collapsed: true, position: "topright"}).addTo(map);

      const end = (which, letter) => {
        const mark = make("div", letter, `end ${which}`);
        mark.style.cssText = "width:24px;height:24px";
        L.marker(data.ends[which], {
          icon: L.divIcon({html: mark, className: "", iconSize: [24, 24]}), keyboard: false, title: which, alt: which, zIndexOffset: 500,
        }).addTo(map);
      };
      if (data.ends) {
        end("origin", "A");
        end("destination", "B");
      }
      for (const [lat, lng, label] of data.nodes) {
        if (data.ends && [data.ends.origin, data.ends.destination].some((at) => Math.hypot(at[0] - lat, at[1] - lng) < 1e-4)) continue;
        L.marker([lat, lng], {icon: L.divIcon({html: make("div", label, "node"), className: "", iconSize: [0, 0]}), interactive: false, keyboard: false}).addTo(map);
      }
      const marks = data.routes.map((route, i) => {
        if (!route.badge) return null;
        const mark = make("div", String(i + 1), "badge off");
        mark.style.cssText = "width:20px;height:18px";
        L.marker(route.badge, {icon: L.divIcon({html: mark, className: "", iconSize: [20, 18]}), keyboard: false})
          .on("click", () => pickRoute(state.route === i ? -1 : i)).addTo(badges);
        return mark;
      });

      const tip = make("span");
      const name = () => { tip.textContent = data.names[bulk.edgeName[loads.hit]]; };
      loads.bindTooltip(() => tip, {sticky: true, direction: "top", offset: [0, -6]});
      loads.on("mousemove mouseover click", name);
      loads.on("click", () => pickEdge(loads.hit));
      map.on("overlayadd overlayremove", (event) => {
        if (event.name === "Recommended routes" || event.name === "Loads") for (const layer of [loads, road, picked]) if (map.hasLayer(layer)) layer.bringToFront();
        const other = views[1 - side];
        if (!other) return;
        const layer = other.overlays[event.name], add = event.type === "overlayadd";
        if (add !== other.map.hasLayer(layer)) other.map[add ? "addLayer" : "removeLayer"](layer);
      });
      return {map, overlays, backdrop, bands, loads, picked, road, marks, bandLevels: new Uint8Array(edges)};
    }

    function paintMap(side) {
      const {loads, bands, marks, bandLevels} = views[side], learner = state.shown[side];
      const shares = bulk[`shares${learner}`].subarray(state.step * routes.length, (state.step + 1) * routes.length);
      const sums = new Float32Array(edges);
      routes.forEach((of, i) => { for (const edge of of) sums[edge] += shares[i]; });
      for (let i = 0; i < edges; i += 1) {
        bandLevels[i] = sums[i] < 0.002 ? 255 : Math.min(BANDS, Math.round(BANDS * sums[i]));
      }
      marks.forEach((mark, i) => { if (mark) mark.classList.toggle("off", shares[i] < 0.01 && state.route !== i); });
      return bands.setLevels(bandLevels) + loads.setLevels(bulk[`classes${learner}`].subarray(state.step * edges, (state.step + 1) * edges));
    }

    // ---- words above the maps ------------------------------------------------------------------------------------
    const panes = Array.from(document.querySelectorAll(".pane"));
    $("panes").classList.toggle("single", panes.length === 1);
    const heads = panes.map((pane, side) => {
      const select = pane.querySelector("select");
      data.learners.forEach((one, i) => {
        const option = make("option", one.label);
        option.value = String(i);
        select.append(option);
      });
      select.addEventListener("change", () => choose(side, Number(select.value)));
      return {pane, select, informed: pane.querySelector(".informed"), output: pane.querySelector("output")};
    });
    function paintHead(side) {
      const {pane, select, informed, output} = heads[side], learner = data.learners[state.shown[side]];
      select.value = String(state.shown[side]);
      pane.style.setProperty("--mine", curveColour(state.shown[side]));
      informed.textContent = learner.informed ? "was told the congestion" : "";
      const mean = learner.curve[state.step];
      output.replaceChildren(make("b", known(mean) ? digits(mean) : "–"), make("span", data.measure));
      maps[side].getContainer().setAttribute("aria-label", `Map of what ${learner.label} recommended`);
    }

    // ---- curves --------------------------------------------------------------------------------------------------
    const REFERENCE = ["6 4", "2 4", "9 3 2 3"];
    $("curves-title").textContent = data.measure;
    const curves = Charts.chart($("curves"), () => ({
      label: `${data.measure} of each learner over time`, x: data.stepEnds, log, formatX, formatY: (y) => digits(y, 4),
      xLabel: rounds ? "rounds" : "time, h:min", yLabel: data.measure, height: 270,
      series: [
        ...data.references.map((one, i) => ({values: one.values, colour: "var(--ink)", dash: REFERENCE[i % 3], width: 1.5, key: `r${i}`})),
        ...data.learners.map((one, i) => ({
          values: one.curve, lower: one.lower, upper: one.upper, colour: curveColour(i), dash: one.dash,
          width: state.shown.includes(i) ? 3 : 1.6, faint: !state.shown.includes(i), dot: state.shown.includes(i), key: `l${i}`,
        })),
      ].filter((one) => !state.hidden.has(one.key)),
    }), go);
    function paintKeys() {
      const key = (id, label, colour, dash, width) => {
        const item = make("li"), button = make("button");
        button.type = "button";
        button.setAttribute("aria-pressed", String(!state.hidden.has(id)));
        button.append(Charts.swatch(colour, dash, width), make("span", label));
        button.addEventListener("click", () => {
          if (!state.hidden.delete(id)) state.hidden.add(id);
          button.setAttribute("aria-pressed", String(!state.hidden.has(id)));
          curves.draw();
        });
        item.append(button);
        return item;
      };
      $("curve-legend").replaceChildren(
        ...data.learners.map((one, i) => key(`l${i}`, one.informed && !/informed/.test(one.label) ? `${one.label} (informed)` : one.label, curveColour(i), one.dash, state.shown.includes(i) ? 4 : 2)),
        ...data.references.map((one, i) => key(`r${i}`, one.name, "var(--ink)", REFERENCE[i % 3], 1.5)),
      );
    }

    // ---- routes --------------------------------------------------------------------------------------------------
    const rows = [];
    function buildTable() {
      const head = $("routes").tHead, body = $("routes").tBodies[0];
      const facts = data.arms ? [] : [["Length", (r) => (known(r.length) ? metres(r.length) : "–")], ["Empty", (r) => (known(r.freeFlow) ? seconds(r.freeFlow) : "–")]];
      const groups = make("tr"), titles = make("tr");
      const cell = (row, text, className, span) => {
        const made = make("th", text, className);
        made.scope = span ? "colgroup" : "col";
        if (span) made.colSpan = span;
        row.append(made);
        return made;
      };
      cell(groups, "", "", 2 + facts.length);
      cell(titles, data.arms ? "Arm" : "Route", "text");
      cell(titles, data.arms ? "Which" : "Via", "text");
      for (const [title] of facts) cell(titles, title);
      const mean = data.arms ? "Mean reward" : "Mean trip";
      state.shown.forEach((learner) => {
        cell(groups, data.learners[learner].label, "group", 3).style.setProperty("--mine", curveColour(learner));
        for (const title of [mean, "Share now", "Overall"]) cell(titles, title);
      });
      head.replaceChildren(groups, titles);
      rows.length = 0;
      body.replaceChildren(...data.routes.map((route, i) => {
        const row = make("tr"), button = make("button", String(i + 1));
        const add = (text, label, className) => {
          const made = make("td", text, className);
          if (label) made.dataset.label = label;
          row.append(made);
          return made;
        };
        button.type = "button";
        button.setAttribute("aria-label", `Show route ${i + 1} on the maps`);
        button.setAttribute("aria-pressed", String(state.route === i));
        add("", "", "number text").append(button);
        add(route.via, "", "via text").dir = "auto";
        for (const [title, text] of facts) add(text(route), title, "fact");
        const now = state.shown.map((learner) => {
          add(known(route.values[learner]) ? value(route.values[learner]) : "–", `${data.learners[learner].label}: ${mean.toLowerCase()}`);
          const share = add("", "now", "share");
          const text = make("span"), bar = make("i");
          share.append(text, bar);
          share.style.setProperty("--mine", curveColour(learner));
          add(percent(route.overall[learner]), "overall");
          return [text, bar];
        });
        row.addEventListener("click", () => pickRoute(state.route === i ? -1 : i));
        row.addEventListener("mouseenter", () => highlight(i));
        row.addEventListener("mouseleave", () => highlight(state.route));
        button.addEventListener("focus", () => highlight(i));
        button.addEventListener("blur", () => highlight(state.route));
        rows.push({row, button, now});
        return row;
      }));
      const left = state.shown.map((learner) => 1 - data.routes.reduce((sum, route) => sum + route.overall[learner], 0));
      $("rest").textContent = left.some((share) => share > 0.005)
        ? `Routes that are not listed: ${state.shown.map((learner, k) => `${percent(Math.max(0, left[k]))} of ${data.learners[learner].label}`).join(", ")}.` : "";
    }
    function paintShares() {
      rows.forEach(({row, button, now}, i) => {
        now.forEach(([text, bar], side) => {
          const share = bulk[`shares${state.shown[side]}`][state.step * routes.length + i];
          text.textContent = percent(share);
          bar.style.width = `${Math.min(100, 100 * share)}%`;
        });
        row.classList.toggle("picked", state.route === i);
        button.setAttribute("aria-pressed", String(state.route === i));
      });
    }
    function highlight(i) {
      for (const {picked, marks} of views) {
        picked.setLatLngs(i < 0 ? [] : routeLine(i));
        picked.bringToFront();
        marks.forEach((mark, k) => { if (mark) mark.classList.toggle("picked", k === i); });
      }
    }
    function pickRoute(i) {
      state.route = i;
      highlight(i);
      paintShares();
      views.forEach((_, side) => paintMap(side));
    }

    // ---- one road ------------------------------------------------------------------------------------------------
    const dearer = data.arms ? "times dearer than unused" : "times as long as empty";
    const ratio = (learner, step, edge) => data.mostRatio ** (bulk[`ratios${learner}`][step * edges + edge] / 255);
    const load = (learner, step, edge) => data.mostLoad * (bulk[`loads${learner}`][step * edges + edge] / 255) ** 2;
    $("hint").textContent = data.arms ? "Click an arm for its history." : "Click a road for its name and its history.";
    const history = Charts.chart($("road-chart"), () => ({
      label: "History of the road", x: data.stepEnds, log, formatX, formatY: (y) => digits(y, 3), least: 1,
      xLabel: rounds ? "rounds" : "time, h:min", yLabel: dearer, height: 190,
      series: state.shown.map((learner) => ({
        values: data.stepEnds.map((_, i) => ratio(learner, i, state.edge)), colour: curveColour(learner), dash: data.learners[learner].dash, width: 2.2, dot: true,
      })),
    }), go);
    function paintRoad(fresh) {
      const edge = state.edge, open = edge >= 0;
      $("road").hidden = !open;
      $("curves").closest(".columns").classList.toggle("alone", !open);
      for (const {road} of views) road.setLatLngs(open ? [edgeLines[edge]] : []);
      if (!open) return;
      $("road-name").textContent = data.names[bulk.edgeName[edge]];
      $("road-name").dir = "auto";
      const facts = [];
      if (data.kinds[bulk.edgeKind[edge]]) facts.push(["class", data.kinds[bulk.edgeKind[edge]].replace(/_/g, " ")]);
      if (known(bulk.edgeLength[edge])) facts.push(["length", metres(bulk.edgeLength[edge])]);
      if (!data.arms && known(bulk.edgeFree[edge])) facts.push(["empty", seconds(bulk.edgeFree[edge])]);
      for (const learner of state.shown) {
        const uses = load(learner, state.step, edge), window = rounds ? `${digits(data.window)} rounds` : seconds(data.window);
        facts.push([data.learners[learner].label, `${digits(uses, 3)} uses in ${window}, ${digits(ratio(learner, state.step, edge), 3)} ${dearer}`]);
      }
      $("road-facts").replaceChildren(...facts.flatMap(([name, text]) => [make("dt", name), make("dd", text)]));
      $("road-twin").hidden = bulk.edgeTwin[edge] < 0;
      if (fresh) {
        history.draw();
        $("road-keys").replaceChildren(...state.shown.map((learner) => {
          const item = make("li");
          item.append(Charts.swatch(curveColour(learner), data.learners[learner].dash), make("span", data.learners[learner].label));
          return item;
        }));
      }
      history.at(state.step);
    }
    function pickEdge(edge) {
      state.edge = edge;
      paintRoad(true);
      if (edge >= 0) $("road").scrollIntoView({block: "nearest", behavior: still.matches ? "auto" : "smooth"});
    }
    $("road-close").addEventListener("click", () => pickEdge(-1));
    $("road-twin").addEventListener("click", () => pickEdge(bulk.edgeTwin[state.edge]));

    // ---- what traffic met, and how trips spread --------------------------------------------------------------------
    let met = [];
    function buildMet() {
      $("met").replaceChildren();
      met = state.shown.map((learner) => {
        const part = make("div", undefined, "met-one"), box = make("div", undefined, "chart");
        part.append(make("h3", data.learners[learner].label), box);
        $("met").append(part);
        return Charts.chart(box, () => ({
          label: `Share of road uses by class of load, ${data.learners[learner].label}`, x: data.stepEnds, log, formatX,
          formatY: (y) => `${Math.round(100 * y)} %`, low: 0, high: 1, xLabel: rounds ? "rounds" : "time, h:min", yLabel: "share of uses", height: 150,
          stacks: data.classes.map((one, k) => ({colour: dark() ? one.dark : one.light, values: data.learners[learner].met.map((row) => row[k])})),
        }), go);
      });
    }
    $("spread-title").textContent = data.arms ? "Rewards by arm" : "Trips by the time of their route";
    $("spread-note").textContent = data.arms
      ? "Share of rounds whose arm paid at most so much on average." : "Share of trips on the listed routes whose route took at most so long on average.";
    const spread = Charts.chart($("spread"), () => ({
      label: "Distribution of trips", x: [0], formatX: (x) => digits(x, 3), formatY: (y) => `${Math.round(100 * y)} %`, low: 0, high: 1,
      xLabel: data.arms ? "mean reward" : "mean trip, s", yLabel: "share of trips", height: 250,
      series: data.learners.map((one, i) => {
        const list = data.routes.map((route) => [route.values[i], route.overall[i]]).filter(([at, share]) => known(at) && share > 0).sort((a, b) => a[0] - b[0]);
        const all = list.reduce((sum, [, share]) => sum + share, 0) || 1;
        let sum = 0;
        const x = [], values = [];
        for (const [at, share] of list) {
          if (!x.length) { x.push(at); values.push(0); }
          sum += share / all;
          x.push(at);
          values.push(sum);
        }
        return {x, values, steps: true, colour: curveColour(i), dash: one.dash, width: state.shown.includes(i) ? 3 : 1.6, faint: !state.shown.includes(i)};
      }).filter((one) => one.x.length),
    }));
    $("spread").closest(".card").hidden = !data.routes.some((route) => route.values.some(known));
    function paintSpreadKeys() {
      $("spread-keys").replaceChildren(...data.learners.map((one, i) => {
        const item = make("li");
        item.append(Charts.swatch(curveColour(i), one.dash, state.shown.includes(i) ? 4 : 2), make("span", one.label));
        return item;
      }));
    }

    // ---- time ------------------------------------------------------------------------------------------------------
    const slider = $("time");
    slider.max = String(steps - 1);
    function go(step) {
      state.step = Math.max(0, Math.min(steps - 1, step));
      slider.value = String(state.step);
      const name = stepName(state.step);
      $("when").textContent = name;
      slider.setAttribute("aria-valuetext", name);
      views.forEach((_, side) => { paintMap(side); paintHead(side); });
      curves.at(state.step);
      met.forEach((one) => one.at(state.step));
      paintShares();
      if (state.edge >= 0) paintRoad(false);
    }
    function pause() {
      clearInterval(state.timer);
      state.timer = null;
      $("play").textContent = "Play";
      $("play").setAttribute("aria-pressed", "false");
    }
    function play() {
      if (state.step === steps - 1) go(0);
      $("play").textContent = "Pause";
      $("play").setAttribute("aria-pressed", "true");
      state.timer = setInterval(() => {
        go(state.step + 1);
        if (state.step === steps - 1) pause();
      }, 1000 / Number($("speed").value));
    }
    const toggle = () => (state.timer === null ? play() : pause());
    slider.addEventListener("input", () => { pause(); go(Number(slider.value)); });
    $("play").addEventListener("click", toggle);
    $("back").addEventListener("click", () => { pause(); go(state.step - 1); });
    $("forward").addEventListener("click", () => { pause(); go(state.step + 1); });
    $("speed").addEventListener("change", () => { if (state.timer !== null) { pause(); play(); } });
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape") {
        pickEdge(-1);
        pickRoute(-1);
      }
      const on = event.target, free = !(on instanceof Element) || !on.closest("input, select, textarea, .leaflet-container");
      if (!free || event.altKey || event.ctrlKey || event.metaKey) return;
      const to = {ArrowLeft: state.step - 1, ArrowRight: state.step + 1, Home: 0, End: steps - 1}[event.key];
      if (to !== undefined) {
        event.preventDefault();
        pause();
        go(to);
      } else if (event.key === " " && !(on instanceof Element && on.closest("button, a"))) {
        event.preventDefault();
        toggle();
      }
    });
    // Space on the slider plays too; the browser gives it no other meaning there.
    slider.addEventListener("keydown", (event) => {
      if (event.key === " ") { event.preventDefault(); toggle(); }
    });

    // ---- learners, light and dark ------------------------------------------------------------------------------------
    function paintLegend() {
      $("classes").replaceChildren(...data.classes.map((one) => {
        const item = make("li");
        item.append(Charts.swatch(dark() ? one.dark : one.light, "", one.width), make("span", `${one.word}: ${one.range}`));
        return item;
      }));
      const wedge = Charts.element("svg", {width: 44, height: 24, "aria-hidden": "true"});
      Charts.element("path", {d: "M1 10 L43 1 V23 L1 14 Z", fill: "var(--band)"}, wedge);
      $("band").replaceChildren(wedge, make("span", "the wider the band, the more often recommended"));
    }
    function paintAll() {
      paintLegend();
      paintKeys();
      paintSpreadKeys();
      buildTable();
      buildMet();
      for (const view of views) {
        view.backdrop.recolour();
        view.loads.setStyles(classStyles());
        view.bands.setStyles(bandStyles());
        view.picked.setStyle({color: Roads.colour("--pick")});
        view.road.setStyle({color: Roads.colour("--accent")});
      }
      curves.draw();
      spread.draw();
      met.forEach((one) => one.draw());
      paintRoad(true);
      go(state.step);
    }
    function choose(side, learner) {
      // A learner chosen on both sides would compare it with itself: they change places instead.
      const other = 1 - side;
      if (state.shown.length > 1 && state.shown[other] === learner) state.shown[other] = state.shown[side];
      state.shown[side] = learner;
      paintAll();
    }
    const wantsDark = window.matchMedia("(prefers-color-scheme: dark)");
    function setTheme(isDark) {
      root.dataset.theme = isDark ? "dark" : "light";
      $("theme").textContent = isDark ? "Light" : "Dark";
      $("theme").setAttribute("aria-pressed", String(isDark));
    }
    $("theme").addEventListener("click", () => { setTheme(!dark()); paintAll(); });
    wantsDark.addEventListener("change", (event) => { setTheme(event.matches); paintAll(); });

    $("title").textContent = data.title;
    const count = data.learners.length === 1 ? "one learner" : `${data.learners.length} learners`;
    const span = rounds ? `${data.stepEnds[steps - 1].toLocaleString("en")} rounds, window of ${digits(data.window)} rounds` : `${clockTime(data.stepEnds[steps - 1])} h of traffic, window of ${seconds(data.window)}`;
    $("about").textContent = `${data.place ? `${data.place}. ` : ""}${span}, ${count}.`;
    $("credit").textContent = data.credit;
    setTheme(wantsDark.matches);
    new ResizeObserver(() => maps.forEach((map) => map.invalidateSize({pan: false}))).observe($("panes"));
    paintAll();
    // For those who measure or test the page.
    Page.go = go;
    Page.state = state;
    Page.views = views;
  }

  return {start};
})();
