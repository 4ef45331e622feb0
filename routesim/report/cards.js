// The cards under the maps: curves of all learners, the routes, one road's history, what traffic met, how trips spread.
// Each returns `build` (learners or colours changed) and `paint` (time moved), and reads the page's shared state.
"use strict";
const Cards = (() => {
  const {known, make, digits, exact, percent, metres, seconds} = Words;
  const vehicles = (count) => `${digits(count, 3)} ${count === 1 ? "vehicle" : "vehicles"}`;
  const $ = (id) => document.getElementById(id);
  // The measure in words: what it is the mean of, and its unit if it has one.
  const parts = (page) => page.data.measure.replace("mean ", "").split(", ");
  const REFERENCE = ["6 4", "2 4", "9 3 2 3"];
  const FIRST = 12;

  const time = (page) => ({x: page.data.stepEnds, log: page.log, formatX: page.formatX, clock: !page.rounds, xLabel: page.rounds ? "rounds" : "time, h:min"});
  const weight = (page, i) => (page.state.shown.includes(i) ? {width: 3, dot: true} : {width: 1.6, faint: true});
  function key(page, i, label) {
    const item = make("li");
    item.append(Charts.swatch(page.colour(i), page.data.learners[i].dash, page.state.shown.includes(i) ? 4 : 2), make("span", label));
    return item;
  }

  function curves(page) {
    const {data, state} = page, hidden = new Set();
    const [, unit] = parts(page);
    // The measure step by step, or what was lost so far against the best policy: the one thing to see on arms.
    const own = {
      title: data.measure, references: data.references, floor: undefined,
      of: (one) => ({values: one.curve, lower: one.lower, upper: one.upper}),
    };
    const regret = {
      title: unit ? `average regret so far, ${unit} a trip` : `average regret a ${data.arms ? "round" : "trip"} so far`, references: [], floor: 0,
      of: (one) => ({values: one.regret[0], lower: one.regret[1], upper: one.regret[2]}),
    };
    const views = data.learners.every((one) => one.regret) ? [own, regret] : [own];
    let view = data.arms ? views[views.length - 1] : own;
    const chart = Charts.chart($("curves"), () => ({
      ...time(page), label: `${view.title} of each learner over time`, formatY: exact, yLabel: view.title, height: 270,
      floor: view.floor,
      series: [
        ...view.references.map((one, i) => ({values: one.values, colour: "var(--ink)", dash: REFERENCE[i % 3], width: 1.5, key: `r${i}`})),
        ...data.learners.map((one, i) => ({...view.of(one), colour: page.colour(i), dash: one.dash, ...weight(page, i), key: `l${i}`})),
      ].filter((one) => !hidden.has(one.key)),
    }), page.go);
    const buttons = views.map((one) => {
      const button = make("button", one === own ? data.measure : "regret");
      button.type = "button";
      button.addEventListener("click", () => {
        view = one;
        build();
        chart.at(state.step);
      });
      return button;
    });
    $("measures").append(...buttons);
    $("measures").hidden = views.length === 1;
    function toggle(id, label, colour, dash, width) {
      const item = make("li"), button = make("button");
      const show = () => button.setAttribute("aria-pressed", String(!hidden.has(id)));
      button.type = "button";
      button.append(Charts.swatch(colour, dash, width), make("span", label));
      button.addEventListener("click", () => {
        if (!hidden.delete(id)) hidden.add(id);
        show();
        chart.draw();
      });
      show();
      item.append(button);
      return item;
    }
    const told = (one) => (one.informed && !one.label.includes("informed") ? `${one.label} (informed)` : one.label);
    function build() {
      $("curves-title").textContent = view.title;
      buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(views[i] === view)));
      $("curve-legend").replaceChildren(
        ...data.learners.map((one, i) => toggle(`l${i}`, told(one), page.colour(i), one.dash, state.shown.includes(i) ? 4 : 2)),
        ...view.references.map((one, i) => toggle(`r${i}`, one.name, "var(--ink)", REFERENCE[i % 3], 1.5)),
      );
      chart.draw();
    }
    return {build, paint: () => chart.at(state.step)};
  }

  function routes(page) {
    const {data, bulk, state} = page, rows = [], count = data.routes.length;
    let all = false;
    const [what, unit] = parts(page), mean = `Mean ${what}`;
    const value = (number) => (unit === "s" ? seconds(number) : digits(number));
    const facts = data.arms ? [] : [
      ["Length", (route) => (known(route.length) ? metres(route.length) : "–")],
      ["Empty", (route) => (known(route.freeFlow) ? seconds(route.freeFlow) : "–")],
    ];
    $("routes-title").textContent = data.arms ? "Arms" : "Routes";

    function head() {
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
      for (const learner of state.shown) {
        cell(groups, data.learners[learner].label, "group", 3).style.setProperty("--mine", page.colour(learner));
        for (const title of [mean, "Share now", "Overall"]) cell(titles, title);
      }
      return [groups, titles];
    }
    function line(route, i) {
      const row = make("tr"), button = make("button", String(i + 1));
      const add = (text, label, className) => {
        const made = make("td", text, className);
        if (label) made.dataset.label = label;
        row.append(made);
        return made;
      };
      button.type = "button";
      button.setAttribute("aria-label", `Show route ${i + 1} on the maps`);
      add("", "", "number text").append(button);
      add(route.via, "", "via text").dir = "auto";
      for (const [title, text] of facts) add(text(route), title, "fact");
      const now = state.shown.map((learner) => {
        add(known(route.values[learner]) ? value(route.values[learner]) : "–", `${data.learners[learner].label}: ${mean.toLowerCase()}`);
        const share = add("", "now", "share"), text = make("span"), bar = make("i");
        share.append(text, bar);
        share.style.setProperty("--mine", page.colour(learner));
        add(percent(route.overall[learner]), "overall");
        return [text, bar];
      });
      row.addEventListener("click", () => page.pickRoute(state.route === i ? -1 : i));
      row.addEventListener("mouseenter", () => page.highlight(i));
      row.addEventListener("mouseleave", () => page.highlight(state.route));
      button.addEventListener("focus", () => page.highlight(i));
      button.addEventListener("blur", () => page.highlight(state.route));
      rows.push({row, button, now});
      return row;
    }
    function build() {
      rows.length = 0;
      $("routes").tHead.replaceChildren(...head());
      $("routes").tBodies[0].replaceChildren(...data.routes.map(line));
      $("routes").closest(".card").hidden = !count;
      fold();
      const left = state.shown.map((learner) => Math.max(0, 1 - data.routes.reduce((sum, route) => sum + route.overall[learner], 0)));
      $("rest").textContent = left.some((share) => share > 0.005)
        ? `Routes that are not listed: ${state.shown.map((learner, k) => `${percent(left[k])} of ${data.learners[learner].label}`).join(", ")}.` : "";
    }
    function fold() {
      rows.forEach(({row}, i) => { row.hidden = !all && i >= FIRST; });
      $("more").hidden = count <= FIRST;
      $("more").textContent = all ? `Only the first ${FIRST} routes` : `All ${count} routes`;
      $("more").setAttribute("aria-expanded", String(all));
    }
    $("more").addEventListener("click", () => { all = !all; fold(); });
    function paint() {
      rows.forEach(({row, button, now}, i) => {
        now.forEach(([text, bar], side) => {
          const share = bulk[`shares${state.shown[side]}`][state.step * count + i];
          text.textContent = percent(share);
          bar.style.width = `${Math.min(100, 100 * share)}%`;
        });
        row.classList.toggle("picked", state.route === i);
        button.setAttribute("aria-pressed", String(state.route === i));
      });
    }
    return {build, paint};
  }

  function road(page) {
    const {data, bulk, state, edges} = page;
    const dearer = data.arms ? "times dearer than unused" : parts(page)[0] === "trip" ? "times as long as empty" : "times dearer than empty";
    const ratio = (learner, step) => data.mostRatio ** (bulk[`ratios${learner}`][step * edges + state.edge] / 255);
    const load = (learner) => data.mostLoad * (bulk[`loads${learner}`][state.step * edges + state.edge] / 255) ** 2;
    const ratios = () => state.shown.map((learner) => ({
      values: data.stepEnds.map((_, i) => ratio(learner, i)), colour: page.colour(learner), dash: data.learners[learner].dash, width: 2.2, dot: true,
    }));
    // Vehicles on the road, and those of its queue with what waits to enter as a dotted line.
    const counts = () => state.shown.filter(page.queues.known).flatMap((learner) => {
      const all = data.stepEnds.map((_, i) => page.queues.of(learner, i, state.edge)), colour = page.colour(learner);
      return [
        {values: all.map(([on]) => on), colour, dash: data.learners[learner].dash, width: 2.2, dot: true},
        {values: all.map(([, queued, outside]) => queued + outside), colour, dash: "1 4", width: 2.2},
      ];
    });
    const chart = Charts.chart($("road-chart"), () => (state.full
      ? {...time(page), label: "Vehicles on the road over time", formatY: exact, least: 0, yLabel: "vehicles; dotted: queued and waiting", height: 190, series: counts()}
      : {...time(page), label: "History of the road", formatY: exact, least: 1, yLabel: dearer, height: 190, series: ratios()}), page.go);
    // What stands on the road in words: how full it is, how long its queue is, and who waits to enter.
    function stands(learner) {
      const [on, queued, outside, reach] = page.queues.of(learner, state.step, state.edge);
      const full = page.queues.full(learner, state.edge, on), long = reach > 0 ? ` (${metres(reach)} long)` : "";
      return `${vehicles(on)} on it${known(full) ? ` (${percent(full)} full)` : ""}, ${digits(queued, 3)} in its queue${long}, ${digits(outside, 3)} waiting to enter`;
    }
    function build() {
      const open = state.edge >= 0;
      $("road").hidden = !open;
      $("curves").closest(".columns").classList.toggle("alone", !open);
      if (!open) return;
      $("road-name").textContent = data.names[bulk.edgeName[state.edge]];
      $("road-name").dir = "auto";
      $("road-twin").hidden = bulk.edgeTwin[state.edge] < 0;
      $("road-keys").replaceChildren(...state.shown.map((learner) => key(page, learner, data.learners[learner].label)));
      chart.draw();
      paint();
    }
    function paint() {
      const edge = state.edge;
      if (edge < 0) return;
      const facts = [], kind = data.kinds[bulk.edgeKind[edge]];
      if (kind) facts.push(["class", kind.replace(/_/g, " ")]);
      if (known(bulk.edgeLength[edge])) facts.push(["length", metres(bulk.edgeLength[edge])]);
      if (known(bulk.edgeFree[edge])) facts.push(["empty", seconds(bulk.edgeFree[edge])]);
      const window = page.rounds ? `${digits(data.window)} rounds` : seconds(data.window);
      for (const learner of state.shown) {
        const text = `${digits(load(learner), 3)} uses in ${window}, ${digits(ratio(learner, state.step), 3)} ${dearer}`;
        facts.push([data.learners[learner].label, text]);
        if (page.queues.known(learner)) facts.push(["", stands(learner)]);
      }
      $("road-facts").replaceChildren(...facts.flatMap(([name, text]) => [make("dt", name), make("dd", text)]));
      chart.at(state.step);
    }
    $("hint").textContent = data.arms ? "Click an arm for its history." : "Click a road for its name and its history.";
    $("road-close").addEventListener("click", () => page.pickEdge(-1));
    $("road-twin").addEventListener("click", () => page.pickEdge(bulk.edgeTwin[state.edge]));
    return {build, paint};
  }

  function met(page) {
    const {data, state} = page;
    let charts = [];
    function build() {
      $("met").replaceChildren();
      charts = state.shown.map((learner) => {
        const part = make("div", undefined, "met-one"), box = make("div", undefined, "chart"), mine = data.learners[learner];
        part.append(make("h3", mine.label), box);
        $("met").append(part);
        return Charts.chart(box, () => ({
          ...time(page), label: `Share of road uses by class of load, ${mine.label}`, yLabel: "share of uses", height: 150, low: 0, high: 1,
          formatY: (y) => `${Math.round(100 * y)} %`,
          stacks: data.classes.map((one, k) => ({colour: page.dark() ? one.dark : one.light, values: mine.met.map((row) => row[k])})),
        }), page.go);
      });
      for (const chart of charts) chart.draw();
    }
    return {build, paint: () => charts.forEach((chart) => chart.at(state.step))};
  }

  function spread(page) {
    const {data} = page, what = page.rounds ? parts(page)[0] : "trip", some = data.arms ? "rounds" : "trips";
    const [title, most] = {
      trip: ["How long trips took", "took at most so long"],
      cost: [`What ${some} cost`, "cost at most so much"],
    }[what] ?? [`What ${some} paid`, "paid at most so much"];
    $("spread-title").textContent = title;
    $("spread-note").textContent = `Share of ${some} that ${most}${page.rounds ? ", noise left out" : ""}.`;
    const learners = data.learners.map((one, i) => i).filter((i) => data.learners[i].quantiles);
    const every = learners.flatMap((i) => data.learners[i].quantiles);
    const chart = Charts.chart($("spread"), () => ({
      label: title, x: [0], log: Math.max(...every) > 10 * Math.min(...every), formatX: exact, formatY: (y) => `${Math.round(100 * y)} %`, low: 0, high: 1,
      xLabel: page.rounds ? parts(page).join(", ") : "trip, s", yLabel: `share of ${some}`, height: 250,
      series: learners.map((i) => ({
        x: data.learners[i].quantiles, values: data.learners[i].quantiles.map((_, k) => k / 100),
        colour: page.colour(i), dash: data.learners[i].dash, ...weight(page, i), dot: false,
      })),
    }));
    $("spread").closest(".card").hidden = !learners.length;
    function build() {
      $("spread-keys").replaceChildren(...learners.map((i) => key(page, i, data.learners[i].label)));
      if (learners.length) chart.draw();
    }
    return {build, paint: () => {}};
  }

  return {curves, routes, road, met, spread};
})();
