// The page: what its parts share, the learners chosen, light and dark, and time with its slider, player and keys.
// Every text from outside is put in as textContent, never as markup.
"use strict";
const Page = (() => {
  const {known, make, digits, exact, whole, seconds, clockTime} = Words;
  const $ = (id) => document.getElementById(id);
  const root = document.documentElement;

  async function start(maps) {
    if (typeof DecompressionStream === "undefined") {
      $("notice").textContent = "This browser is too old to unpack the page; please open it with one from 2023 or later.";
      $("notice").hidden = false;
      return;
    }
    const data = JSON.parse($("data").textContent);
    show(maps, data, await Roads.unpack($("bulk").textContent, data.sections));
    root.dataset.ready = "yes";
  }

  function show(maps, data, bulk) {
    const steps = data.stepEnds.length, rounds = data.clock === "rounds";
    const begins = (i) => (i ? data.stepEnds[i - 1] : data.start);
    const spans = data.stepEnds.map((end, i) => end - begins(i));
    const state = {step: data.step, shown: data.shown.slice(), edge: -1, route: -1, timer: null, full: false};
    const dark = () => root.dataset.theme === "dark";
    const page = {
      data, bulk, state, rounds, dark, go, pickRoute, pickEdge, highlight,
      edges: bulk.edgeName.length,
      roads: ["roads0", "roads1", "roads2"].map((name) => Roads.lines(bulk[name])),
      edgeLines: Roads.lines(bulk.edgeLines),
      routes: data.routes.map((route, i) => bulk.routeEdges.subarray(bulk.routeStarts[i], bulk.routeStarts[i + 1])),
      log: rounds && spans[steps - 1] > 8 * spans[0],
      formatX: (x) => (rounds ? exact(x) : clockTime(x)),
      colour: (i) => data.learners[i][dark() ? "dark" : "light"],
    };
    page.widest = Maps.widest(page);
    page.queues = Queues.reader(page);
    // Colours show how full roads are where all can be full, and travel times elsewhere, until a reader chooses.
    state.full = Boolean(data.queues) && data.learners.every((_, i) => page.queues.known(i));
    const views = [], panes = Array.from(document.querySelectorAll(".pane"));
    $("panes").classList.toggle("single", panes.length === 1);
    for (const [side, map] of maps.entries()) views.push(Maps.view(page, map, side, views));
    if (maps.length === 2) Roads.synchronise(maps);
    const cards = [Cards.curves(page), Cards.routes(page), Cards.met(page), Cards.spread(page)], road = Cards.road(page);

    // ---- words above and below the maps ------------------------------------------------------------------------
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
    function paintHead({pane, select, informed, output}, side) {
      const number = state.shown[side], learner = data.learners[number], mean = learner.curve[state.step];
      select.value = String(number);
      pane.style.setProperty("--mine", page.colour(number));
      informed.textContent = [learner.informed ? "was told the congestion" : "", standing(number)].filter(Boolean).join("; ");
      output.replaceChildren(make("b", known(mean) ? digits(mean) : "–"), make("span", data.measure));
      maps[side].getContainer().setAttribute("aria-label", `Map of what ${learner.label} recommended`);
    }
    // How many vehicles stand in queues and wait to enter in the step, all roads together.
    function standing(learner) {
      if (!page.queues.known(learner)) return "";
      let queued = 0, outside = 0;
      page.queues.each(learner, state.step, (_, [, inQueue, waits]) => { queued += inQueue; outside += waits; });
      return `${whole(Math.round(queued))} in queues, ${whole(Math.round(outside))} waiting to enter`;
    }
    const shows = data.queues ? [[true, "how full roads are"], [false, "travel times"]].map(([full, words]) => {
      const button = make("button", words);
      button.type = "button";
      button.addEventListener("click", () => { state.full = full; paintAll(); });
      return [full, button];
    }) : [];
    $("shows").append(...shows.map(([, button]) => button));
    $("shows").hidden = !shows.length;
    function paintQueueLegend() {
      for (const [full, button] of shows) button.setAttribute("aria-pressed", String(full === state.full));
      for (const id of ["queued", "waiting"]) $(id).hidden = !data.queues;
      if (!data.queues) return;
      const ring = Charts.element("svg", {width: 22, height: 22, "aria-hidden": "true"});
      Charts.element("circle", {cx: 11, cy: 11, r: 8, fill: "var(--halo)", stroke: "var(--pick)", "stroke-width": 2.5}, ring);
      const tail = Charts.element("svg", {width: 44, height: 8, "aria-hidden": "true"});
      Charts.element("path", {d: "M1 4 H43", stroke: "var(--pick)", "stroke-width": 3.2}, tail);
      Charts.element("path", {d: "M1 4 H43", stroke: "var(--halo)", "stroke-width": 1.4, "stroke-dasharray": "3 4"}, tail);
      $("queued").replaceChildren(tail, make("span", "queue, beside its road from the end back to where it stands"));
      $("waiting").replaceChildren(ring, make("span", "vehicles waiting to enter the road, the larger the more"));
    }
    function paintLegend() {
      const empty = `Against ${data.arms ? "an unused arm" : "the empty road"}:`;
      $("against").textContent = state.full ? "Vehicles on the road, as a share of those that stand on it bumper to bumper:" : empty;
      paintQueueLegend();
      $("classes").replaceChildren(...(state.full ? data.queues.classes : data.classes).map((one) => {
        const item = make("li");
        item.append(Charts.swatch(dark() ? one.dark : one.light, "", one.width), make("span", `${one.word}: ${one.range}`));
        return item;
      }));
      const wedge = Charts.element("svg", {width: 44, height: 24, "aria-hidden": "true"});
      Charts.element("path", {d: "M1 10 L43 1 V23 L1 14 Z", fill: "var(--band)"}, wedge);
      $("band").replaceChildren(wedge, make("span", "the wider the band, the more often recommended"));
    }
    const count = data.learners.length === 1 ? "one learner" : `${data.learners.length} learners`;
    const last = data.stepEnds[steps - 1];
    const span = rounds ? `${whole(last)} rounds, window of ${digits(data.window)} rounds` : `${clockTime(last - data.start)} h of traffic, window of ${seconds(data.window)}`;
    $("title").textContent = data.title;
    const models = new Set(data.learners.map((one) => one.physics).filter(Boolean));
    const physics = models.size > 1 ? data.learners.map((one) => `${one.label}: ${one.physics}`).join("; ") : [...models].join("");
    $("about").textContent = `${data.place ? `${data.place}. ` : ""}${span}, ${count}.${physics ? ` Physics: ${physics}.` : ""}`;
    const warned = data.learners.flatMap((one) => one.notices.map((text) => (data.learners.length > 1 ? `${one.label}: ${text}` : text)));
    $("depth").append(...warned.map((text) => make("p", text)));
    $("depth").hidden = !warned.length;
    $("credit").textContent = data.credit;

    // ---- what is picked ------------------------------------------------------------------------------------------
    function highlight(route) {
      for (const view of views) view.highlight(route);
    }
    function pickRoute(route) {
      state.route = route;
      highlight(route);
      go(state.step);
    }
    function pickEdge(edge) {
      state.edge = edge;
      for (const view of views) view.showRoad(edge);
      road.build();
      const calm = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
      if (edge >= 0) $("road").scrollIntoView({block: "nearest", behavior: calm ? "auto" : "smooth"});
    }

    // ---- time ------------------------------------------------------------------------------------------------------
    const slider = $("time");
    slider.max = String(steps - 1);
    function stepName(i) {
      const first = begins(i), end = data.stepEnds[i];
      return rounds ? `rounds ${whole(first + 1)} to ${whole(end)}` : `${clockTime(first)} to ${clockTime(end)}`;
    }
    function go(step) {
      state.step = Math.max(0, Math.min(steps - 1, step));
      slider.value = String(state.step);
      const name = stepName(state.step);
      $("when").textContent = name;
      slider.setAttribute("aria-valuetext", name);
      for (const view of views) view.paint();
      heads.forEach(paintHead);
      for (const card of [...cards, road]) card.paint();
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
    const move = (step) => { pause(); go(step); };
    slider.addEventListener("input", () => move(Number(slider.value)));
    $("play").addEventListener("click", toggle);
    $("back").addEventListener("click", () => move(state.step - 1));
    $("forward").addEventListener("click", () => move(state.step + 1));
    $("speed").addEventListener("change", () => { if (state.timer !== null) { pause(); play(); } });
    document.addEventListener("keydown", (event) => {
      const on = event.target instanceof Element ? event.target : root;
      if (event.altKey || event.ctrlKey || event.metaKey) return;
      if (event.key === "Escape") {
        pickEdge(-1);
        pickRoute(-1);
      }
      // Space plays wherever it has no meaning of its own; a map, a choice and the slider keep their arrows.
      const plays = event.key === " " && !on.closest("button, a, select, summary, .leaflet-container");
      const to = {ArrowLeft: state.step - 1, ArrowRight: state.step + 1, Home: 0, End: steps - 1}[event.key];
      if (plays) toggle();
      else if (to !== undefined && !on.closest("input, select, .leaflet-container")) move(to);
      else return;
      event.preventDefault();
    });

    // ---- learners, light and dark ------------------------------------------------------------------------------------
    function paintAll() {
      paintLegend();
      for (const view of views) view.recolour();
      for (const card of [...cards, road]) card.build();
      go(state.step);
    }
    function choose(side, learner) {
      // A learner chosen on both sides would be compared with itself: they change places instead.
      const other = 1 - side;
      if (state.shown.length > 1 && state.shown[other] === learner) state.shown[other] = state.shown[side];
      state.shown[side] = learner;
      paintAll();
    }
    function setTheme(isDark) {
      root.dataset.theme = isDark ? "dark" : "light";
      $("theme").textContent = isDark ? "Light" : "Dark";
      $("theme").setAttribute("aria-pressed", String(isDark));
      paintAll();
    }
    const wantsDark = window.matchMedia("(prefers-color-scheme: dark)");
    $("theme").addEventListener("click", () => setTheme(!dark()));
    wantsDark.addEventListener("change", (event) => setTheme(event.matches));
    setTheme(wantsDark.matches);
    new ResizeObserver(() => maps.forEach((map) => map.invalidateSize({pan: false}))).observe($("panes"));
    // For those who measure or test the page.
    Object.assign(Page, {go, state, views});
  }

  return {start};
})();
