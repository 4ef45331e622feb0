// Charts: curves with bands and stacked shares over time, as SVG made of elements and plain text.
"use strict";
const Charts = (() => {
  const SVG = "http://www.w3.org/2000/svg";

  function element(name, attributes, parent, text) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    if (parent) parent.append(made);
    return made;
  }

  const MINUTES = [1, 2, 5, 10, 15, 30, 60, 120, 240, 360, 720, 1440].map((minutes) => 60 * minutes);
  const CLOCK = [1, 2, 5, 10, 15, 20, 30, ...MINUTES];

  // About `count` round numbers from low to high, or round times where they are seconds of a clock.
  function ticks(low, high, count, clock) {
    const rough = (high - low) / Math.max(1, count);
    const power = 10 ** Math.floor(Math.log10(rough));
    const decimal = [1, 2, 2.5, 5, 10].map((of) => of * power).find((of) => of >= rough * 0.999);
    const step = (clock && (CLOCK.find((of) => of >= rough) || 86400 * Math.ceil(rough / 86400))) || decimal;
    // Counted and not added up: so labels stay exact, and a range of a few rounding errors ends too.
    const found = [], first = Math.ceil(low / step - 1e-9), last = Math.min(Math.floor(high / step + 1e-9), first + 4 * count + 4);
    for (let k = first; k <= last; k += 1) found.push(k * step || 0);
    return found;
  }

  const powers = (low, high) => {
    const found = [];
    for (let power = Math.ceil(Math.log10(low) - 1e-9); power <= Math.log10(high) + 1e-9; power += 1) found.push(10 ** power);
    if (found.length >= 2) return found;
    const few = [];
    for (let power = 10 ** Math.floor(Math.log10(low)); power <= high; power *= 10) few.push(power, 2 * power, 5 * power);
    const inside = few.filter((value) => value >= low && value <= high);
    return inside.length >= 2 ? inside : ticks(low, high, 4);
  };

  const {known} = Words;

  // Pieces of a curve between gaps, as lists of places.
  function pieces(values) {
    const found = [];
    let piece = [];
    values.forEach((value, i) => {
      if (known(value)) piece.push(i);
      else if (piece.length) { found.push(piece); piece = []; }
    });
    if (piece.length) found.push(piece);
    return found;
  }

  // A chart in `box`. `spec()` returns what to show: x, log, clock (x is seconds), xLabel, yLabel, formatX, formatY, height, `floor`
  // and `least` (the axis reaches down to it, or begins there), series of
  // {colour, dash, width, values, lower, upper, x, faint}, or `stacks` of {colour, values} that add up to one.
  // The returned `at(i)` moves the cursor; `onPick(i)` hears of clicks.
  function chart(box, spec, onPick) {
    let cursor = null, dots = [], scaleX = null, now = 0, drawn = null, width = 0;

    function draw() {
      const of = drawn = spec();
      box.replaceChildren();
      width = Math.max(200, box.clientWidth);
      const height = of.height || 230;
      const svg = element("svg", {viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": of.label}, box);
      const shown = of.series || [];
      const xs = shown.some((one) => one.x) ? shown.flatMap((one) => one.x || []) : of.x;
      let lowX = Math.min(...xs), highX = Math.max(...xs);
      if (of.fromZero) lowX = 0;
      if (lowX === highX) { lowX -= Math.abs(lowX) * 0.1 || 1; highX += Math.abs(highX) * 0.1 || 1; }
      let low = of.low, high = of.high;
      if (low === undefined) {
        const every = shown.flatMap((one) => one.values).filter(known);
        low = every.length ? Math.min(...every) : 0;
        high = every.length ? Math.max(...every) : 1;
        // Bands of few replications can be far wider than what the curves say: they get some room and are cut there.
        const edge = shown.flatMap((one) => (one.faint || !one.lower ? [] : [...one.lower, ...one.upper])).filter(known);
        const most = 0.5 * Math.max(high - low, 0.1 * Math.abs(high));
        [low, high] = [Math.max(low - most, Math.min(low, ...edge)), Math.min(high + most, Math.max(high, ...edge))];
        if (of.least !== undefined) { low = Math.min(low, of.least); high = Math.max(high, of.least + 0.2); }
        if (of.floor !== undefined) low = Math.min(low, of.floor);
        const room = (high - low) * 0.06 || Math.abs(high) * 0.05 || 1;
        low -= of.least === undefined ? room : 0;
        high += room;
      }
      const marks = ticks(low, high, Math.max(2, Math.round(height / 55)));
      const texts = marks.map(of.formatY);
      const left = 28 + 6.6 * Math.max(...texts.map((text) => text.length), 1), right = 10, top = 8, bottom = 40;
      const inner = width - left - right, tall = height - top - bottom;
      const log = of.log && lowX > 0;
      scaleX = (value) => left + inner * (log ? Math.log(value / lowX) / Math.log(highX / lowX) : (value - lowX) / (highX - lowX));
      const scaleY = (value) => top + tall * (1 - (Math.max(low, Math.min(high, value)) - low) / (high - low));
      marks.forEach((value, i) => {
        const y = scaleY(value);
        element("line", {class: "grid", x1: left, x2: width - right, y1: y, y2: y}, svg);
        element("text", {x: left - 6, y: y + 4, "text-anchor": "end"}, svg, texts[i]);
      });
      element("line", {class: "axis", x1: left, x2: width - right, y1: top + tall, y2: top + tall}, svg);
      let last = -Infinity;
      for (const value of log ? powers(lowX, highX) : ticks(lowX, highX, Math.max(2, inner / 90), of.clock)) {
        const x = scaleX(value), text = of.formatX(value), half = 3.3 * text.length;
        if (x - half < last) continue;
        last = x + half + 8;
        element("line", {class: "axis", x1: x, x2: x, y1: top + tall, y2: top + tall + 4}, svg);
        const anchor = x + half > width - 2 ? "end" : "middle";
        element("text", {x: anchor === "end" ? width - 1 : x, y: top + tall + 16, "text-anchor": anchor}, svg, text);
      }
      element("text", {x: left + inner / 2, y: height - 5, "text-anchor": "middle"}, svg, of.xLabel);
      element("text", {x: 11, y: top + tall / 2, "text-anchor": "middle", transform: `rotate(-90 11 ${top + tall / 2})`}, svg, of.yLabel);
      if (of.stacks) stack(svg, of, scaleY);
      const path = (xOf, values, piece) => piece.map((i, k) => {
        const x = scaleX(xOf[i]).toFixed(1), y = scaleY(values[i]).toFixed(1);
        return `${k ? "L" : "M"}${x} ${y}`;
      }).join("");
      for (const one of shown) {
        const xOf = one.x || of.x;
        if (one.lower && !one.faint) {
          for (const piece of pieces(one.values)) {
            const back = [...piece].reverse().map((i) => `L${scaleX(xOf[i]).toFixed(1)} ${scaleY(one.lower[i]).toFixed(1)}`);
            element("path", {d: `${path(xOf, one.upper, piece)}${back.join("")}Z`, fill: one.colour, opacity: 0.16}, svg);
          }
        }
      }
      dots = [];
      for (const one of shown) {
        const xOf = one.x || of.x;
        for (const piece of pieces(one.values)) {
          if (piece.length === 1) {
            element("circle", {cx: scaleX(xOf[piece[0]]), cy: scaleY(one.values[piece[0]]), r: 2.5, fill: one.colour}, svg);
            continue;
          }
          element("path", {
            d: path(xOf, one.values, piece), fill: "none", stroke: one.colour, "stroke-width": one.width || 2,
            "stroke-dasharray": one.dash || "none", "stroke-linejoin": "round", opacity: one.faint ? 0.5 : 1, class: "curve",
          }, svg);
        }
        if (one.dot) dots.push([element("circle", {r: 4, fill: one.colour, stroke: "var(--paper)", "stroke-width": 1.5}, svg), one, scaleY]);
      }
      if (!onPick) return;
      cursor = element("line", {class: "cursor", y1: top, y2: top + tall}, svg);
      const area = element("rect", {class: "pickable", x: left, y: top, width: inner, height: tall, fill: "transparent"}, svg);
      const pick = (event) => {
        const x = event.clientX - svg.getBoundingClientRect().left;
        let best = 0;
        of.x.forEach((value, i) => { if (Math.abs(scaleX(value) - x) < Math.abs(scaleX(of.x[best]) - x)) best = i; });
        onPick(best);
      };
      area.addEventListener("pointerdown", (event) => { area.setPointerCapture(event.pointerId); pick(event); });
      area.addEventListener("pointermove", (event) => { if (event.buttons) pick(event); });
      at(now);
    }

    function stack(svg, of, scaleY) {
      const under = of.x.map(() => 0);
      of.stacks.forEach((one) => {
        const over = under.map((value, i) => value + one.values[i]);
        const there = of.x.map((x, i) => `${i ? "L" : "M"}${scaleX(x).toFixed(1)} ${scaleY(over[i]).toFixed(1)}`);
        const back = of.x.map((x, i) => `L${scaleX(x).toFixed(1)} ${scaleY(under[i]).toFixed(1)}`).reverse();
        element("path", {d: `${there.join("")}${back.join("")}Z`, fill: one.colour, stroke: "var(--paper)", "stroke-width": 0.6}, svg);
        over.forEach((value, i) => { under[i] = value; });
      });
    }

    function at(i) {
      now = i;
      if (!cursor || !drawn) return;
      const x = scaleX(drawn.x[i]);
      cursor.setAttribute("x1", x);
      cursor.setAttribute("x2", x);
      for (const [dot, one, scaleY] of dots) {
        const value = one.values[i];
        dot.setAttribute("visibility", known(value) ? "visible" : "hidden");
        if (known(value)) { dot.setAttribute("cx", x); dot.setAttribute("cy", scaleY(value)); }
      }
    }

    new ResizeObserver(() => { if (drawn && Math.abs(box.clientWidth - width) > 1 && box.clientWidth) draw(); }).observe(box);
    return {draw, at};
  }

  // A short line in a curve's colour and dashes, for legends.
  function swatch(colour, dash, width) {
    const svg = element("svg", {width: 26, height: 12, "aria-hidden": "true"});
    element("line", {x1: 1, x2: 25, y1: 6, y2: 6, stroke: colour, "stroke-width": width || 3, "stroke-dasharray": dash || "none"}, svg);
    return svg;
  }

  return {chart, swatch, element};
})();
