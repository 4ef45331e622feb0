// Queues: how many vehicles stand on each road in a step, and layers that draw them: queues beside a road, from its end backwards
// and as long as they are, and those waiting to enter as rings in front of its beginning.
"use strict";
const Queues = (() => {
  const NONE = [0, 0, 0, 0];
  const LONGEST = 250, UNKNOWN = 0.25;
  const LEAST_RADIUS = 4, MOST_RADIUS = 13, RADII = 50;
  const BESIDE = 5.5; // pixels between a road and its queue, so that its colour is seen and directions are told apart
  const CLEAR = 12; // pixels between a ring and the beginning of its road, where a mark may lie
  const MOST_WAITING = 1000; // so many vehicles, or more, have the largest ring

  // Vehicles on a road, in its queue and waiting to enter, and the metres that the queue reaches back; `full` is the share of the
  // vehicles that stand on it bumper to bumper, NaN where any number has room.
  function reader(page) {
    const {data, bulk} = page;
    const known = (learner) => Boolean(data.queues && data.queues.jam[learner] !== null);
    const room = (learner, edge) => bulk.edgeLaneKm[edge] * data.queues.jam[learner];
    const row = (learner, at) => {
      const values = bulk[`standing${learner}`];
      return [0, 1, 2, 3].map((k) => values[4 * at + k] / data.queues.parts);
    };
    const span = (learner, step) => {
      const starts = bulk[`standStarts${learner}`];
      return [starts[step], starts[step + 1]];
    };
    // Rows of a step are in the order of their edges.
    function of(learner, step, edge) {
      const edges = bulk[`standEdges${learner}`];
      let [low, high] = span(learner, step);
      const end = high;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (edges[middle] < edge) low = middle + 1;
        else high = middle;
      }
      return low < end && edges[low] === edge ? row(learner, low) : NONE;
    }
    function each(learner, step, act) {
      const edges = bulk[`standEdges${learner}`], [first, last] = span(learner, step);
      for (let at = first; at < last; at += 1) act(edges[at], row(learner, at));
    }
    const full = (learner, edge, vehicles) => (room(learner, edge) > 0 ? Math.min(1, vehicles / room(learner, edge)) : NaN);
    return {known, of, each, full};
  }

  // The classes of full roads in a step, and how far queues reach back and how many wait, as levels of the layers below.
  function levels(page, learner, step, into) {
    const {limits} = page.data.queues;
    for (const name of ["full", "queues", "waiting"]) into[name].fill(255);
    if (!page.queues.known(learner)) return;
    page.queues.each(learner, step, (edge, [on, queued, outside, metres]) => {
      const full = page.queues.full(learner, edge, on), length = page.bulk.edgeLength[edge];
      const reach = length > 0 ? Math.min(1, metres / length) : UNKNOWN;
      if (on > 0) into.full[edge] = Number.isNaN(full) ? 0 : limits.filter((limit) => full > limit).length;
      if (queued > 0) into.queues[edge] = Math.max(1, Math.round(LONGEST * reach));
      if (outside > 0) into.waiting[edge] = Math.min(RADII, Math.round(RADII * Math.log(1 + outside) / Math.log(1 + MOST_WAITING)));
    });
  }

  const radius = (level) => LEAST_RADIUS + (MOST_RADIUS - LEAST_RADIUS) * level / RADII;

  // Lines on the right of roads, from their ends backwards; the level is the share of the road in 250 parts. `styles` has the widths
  // and colours of the line and of the dashes on it, which look like vehicles one behind the other.
  const Tails = Roads.Lines.extend({
    _updatePath() {
      const renderer = this._renderer;
      if (!renderer._drawing || !this._parts.length) return;
      const context = renderer._ctx, view = renderer._redrawBounds || renderer._bounds;
      context.beginPath();
      this.levels.forEach((level, i) => {
        if (level === 255 || !this._near(i, view.min, view.max, 15)) return;
        const part = this._parts[i];
        let left = 0;
        for (let k = 1; k < part.length; k += 1) left += part[k].distanceTo(part[k - 1]);
        left = Math.max(left * level / LONGEST, Math.min(left, 3));
        let begun = false;
        for (let k = part.length - 1; k > 0 && left > 0; k -= 1) {
          const {x, y} = part[k], dx = x - part[k - 1].x, dy = y - part[k - 1].y, size = Math.hypot(dx, dy);
          if (!size) continue;
          const right = -BESIDE * dy / size, below = BESIDE * dx / size, share = Math.min(1, left / size);
          context[begun ? "lineTo" : "moveTo"](x + right, y + below);
          context.lineTo(x + right - share * dx, y + below - share * dy);
          begun = true;
          left -= size;
        }
      });
      context.globalAlpha = 1;
      context.lineCap = "butt";
      context.lineJoin = "round";
      this.styles.forEach(([width, stroke], number) => {
        context.setLineDash(number ? [3, 4] : []);
        context.lineWidth = width;
        context.strokeStyle = stroke;
        context.stroke();
      });
      context.setLineDash([]);
    },
  });

  // Rings before the beginnings of roads; the level is their size. `styles` has the width and colours of line and filling.
  const Rings = Roads.Lines.extend({
    options: {weight: 45},

    _updatePath() {
      const renderer = this._renderer;
      if (!renderer._drawing || !this._parts.length) return;
      const context = renderer._ctx, view = renderer._redrawBounds || renderer._bounds;
      const [[width, stroke, fill]] = this.styles;
      context.globalAlpha = 1;
      context.lineWidth = width;
      context.strokeStyle = stroke;
      context.fillStyle = fill;
      this.levels.forEach((level, i) => {
        if (level === 255 || !this._near(i, view.min, view.max, this.options.weight)) return;
        const [start, next] = this._parts[i], size = radius(level);
        const far = (CLEAR + size) / (start.distanceTo(next) || 1);
        context.beginPath();
        context.arc(start.x + far * (start.x - next.x), start.y + far * (start.y - next.y), size, 0, 2 * Math.PI);
        context.fill();
        context.stroke();
      });
    },
  });

  const tailStyles = () => [[3.2, Roads.colour("--pick")], [1.4, Roads.colour("--halo")]];
  const ringStyles = () => [[2.5, Roads.colour("--pick"), Roads.colour("--halo")]];

  return {reader, levels, Tails, Rings, tailStyles, ringStyles};
})();
