// The page of `routesim serve`: click two ends, see the recommended route, and the loads of all recommendations.
"use strict";

const $ = (id) => document.getElementById(id);
const LOADS = ["#f0c000", "#f07800", "#d0104c", "#6a0060"];

let roads, map, state, drawing;
let ends = [];
let decision = null;
const layers = {};

const say = (text) => { $("hint").textContent = text; };
const place = (x, y) => [y, x];
const line = (points) => points.map(([x, y]) => place(x, y));

// The token for writing, if the service wants one: asked for once, and forgotten with the page.
let token = null;

async function ask(path, body) {
  const options = body === undefined ? {} : {
    method: "POST", headers: {"content-type": "application/json"}, body: JSON.stringify(body),
  };
  if (body !== undefined && token !== null) options.headers.authorization = `Bearer ${token}`;
  const answer = await fetch(path, options);
  const content = await answer.json();
  if (answer.status === 401) {
    const given = window.prompt(token === null ? "This service needs a token for writing." : "That was not the token.");
    token = given && /^[!-~]+$/.test(given) ? given : null;
    if (token !== null) return ask(path, body);
  }
  if (!answer.ok) throw new Error(typeof content.detail === "string" ? content.detail : "the request was refused");
  return content;
}

// Every handler may meet a service that is gone or refuses: the reason is shown, and the page goes on.
const safely = (work) => async (...given) => {
  try { await work(...given); } catch (problem) { say(problem.message); }
};

function nearest(at) {
  const flat = roads.geographic ? Math.cos(at.lat * Math.PI / 180) : 1;
  let best = null, least = Infinity;
  for (const [label, x, y] of roads.nodes) {
    const distance = ((x - at.lng) * flat) ** 2 + (y - at.lat) ** 2;
    if (distance < least) { least = distance; best = {label, x, y}; }
  }
  return best;
}

function choose(node) {
  if (ends.length === 2 || (ends.length === 1 && ends[0].label === node.label)) return;
  ends.push(node);
  L.circleMarker(place(node.x, node.y), {renderer: drawing, radius: 8, color: "#fff", weight: 2, fillColor: "#202020", fillOpacity: 1})
    .bindTooltip(ends.length === 1 ? "origin" : "destination", {permanent: true, direction: "top", offset: [0, -8]})
    .addTo(layers.ends);
  const ready = ends.length === 2;
  for (const id of ["recommend", "more"]) $(id).disabled = !ready;
  $("clear").disabled = false;
  say(ready ? "Every recommendation is on the roads from now on." : "Now click the destination.");
}

function clear() {
  ends = [];
  decision = null;
  layers.ends.clearLayers();
  layers.route.clearLayers();
  $("route").textContent = "";
  $("observe").hidden = true;
  for (const id of ["recommend", "more", "clear"]) $(id).disabled = true;
  say("Click the origin on the map.");
}

async function recommend() {
  const body = {trip: {origin: ends[0].label, destination: ends[1].label}};
  if (state.travellers.length) {
    body.traveller = $("traveller").value;
    body.conditions = [...$("conditions").querySelectorAll("input:checked")].map((box) => box.value);
  }
  decision = await ask("recommend", body);
  const {route} = decision, expected = decision.expected_time_s.toFixed(0);
  layers.route.clearLayers();
  L.polyline(line(route.line.coordinates), {renderer: drawing, color: "#0072b2", weight: 6, opacity: 0.75,
                                            className: "route"}).addTo(layers.route);
  $("route").textContent =
    `Route ${route.number + 1}: ${expected} s expected, ${route.free_flow_s.toFixed(0)} s on empty roads.`;
  $("seconds").value = decision.expected_time_s.toFixed(1);
  $("observe").hidden = false;
  await refresh();
}

async function observe(event) {
  event.preventDefault();
  const {repeated} = await ask("observe", {
    decision_id: decision.decision_id, travel_time_s: Number($("seconds").value),
  });
  say(repeated ? "That was known already." : "Learned. Recommend again to see what changes.");
  await refresh();
}

async function refresh() {
  const loads = await ask("loads");
  layers.loads.clearLayers();
  for (const {edge, count} of loads.edges) {
    const colour = LOADS[Math.min(count, LOADS.length) - 1];
    L.polyline(line(roads.lines[edge]), {renderer: drawing, color: colour, weight: 3 + 3 * Math.min(count, 6),
                                         opacity: 0.55, className: "load"})
      .bindTooltip(`${count} of the last ${loads.window} recommendations`, {sticky: true}).addTo(layers.loads);
  }
  state = await ask("state");
  $("totals").textContent = `${state.recommended} recommendations, ${state.observed} observations, ` +
    `window ${state.window}, ${state.pairs} of at most ${state.most_pairs} origin-destination pairs.`;
}

async function begin() {
  [roads, state] = await Promise.all([ask("page/roads.json"), ask("state")]);
  $("title").textContent = state.title;
  $("learner").textContent = `Learner: ${state.learner}`;
  for (const name of state.travellers) $("traveller").append(new Option(name, name));
  for (const name of state.conditions) {
    const label = document.createElement("label"), box = document.createElement("input");
    box.type = "checkbox";
    box.value = name;
    label.append(box, ` ${name} `);
    $("conditions").append(label);
  }
  $("who").hidden = !state.travellers.length;
  map = L.map("map", {preferCanvas: true, crs: roads.geographic ? L.CRS.EPSG3857 : L.CRS.Simple, zoomSnap: 0.25});
  // Text from a road file is text, never markup.
  const credit = document.createElement("span");
  credit.textContent = roads.attribution;
  map.attributionControl.setPrefix(false).addAttribution(credit.innerHTML);
  const drawn = roads.lines.filter((points) => points.length > 1).map(line);
  const backdrop = L.polyline(drawn, {color: "#b4bcc6", weight: 1.5, interactive: false}).addTo(map);
  // The many roads are one picture; what can be pointed at is drawn on top, piece by piece.
  drawing = L.svg({padding: 0.5});
  for (const name of ["loads", "route", "ends"]) layers[name] = L.layerGroup().addTo(map);
  if (drawn.length) map.fitBounds(backdrop.getBounds(), {padding: [20, 20]}); else map.setView([0, 0], 1);
  L.control.scale({imperial: false}).addTo(map);
  map.on("click", (event) => choose(nearest(event.latlng)));
  $("recommend").onclick = safely(recommend);
  $("more").onclick = safely(async () => { for (let n = 0; n < 10; n += 1) await recommend(); });
  $("clear").onclick = clear;
  $("observe").onsubmit = safely(observe);
  clear();
  await refresh();
  setInterval(() => refresh().catch(() => {}), 3000);
}

safely(begin)();
