// Roads: numbers out of the page, and layers that draw many lines on one canvas.
"use strict";
const Roads = (() => {
  const KINDS = {u1: Uint8Array, i4: Int32Array, f4: Float32Array};

  // The deflated arrays of the page, by name.
  async function unpack(text, sections) {
    const raw = atob(text);
    const bytes = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i += 1) bytes[i] = raw.charCodeAt(i);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    const buffer = await new Response(stream).arrayBuffer();
    const arrays = {};
    for (const [name, [start, size, kind]] of Object.entries(sections)) {
      arrays[name] = new KINDS[kind](buffer.slice(start, start + size));
    }
    return arrays;
  }

  // Lines as `pack_lines` wrote them: numbers of seven bits a byte, steps from point to point.
  function lines(bytes) {
    const all = [];
    let place = 0, x = 0, y = 0;
    const next = () => {
      let value = 0, scale = 1, byte;
      do {
        byte = bytes[place];
        place += 1;
        value += (byte & 127) * scale;
        scale *= 128;
      } while (byte > 127);
      return value;
    };
    const step = () => {
      const turned = next();
      return turned % 2 ? -(turned + 1) / 2 : turned / 2;
    };
    while (place < bytes.length) {
      const line = new Array(next());
      for (let i = 0; i < line.length; i += 1) {
        x += step();
        y += step();
        line[i] = new L.LatLng(y / 1e5, x / 1e5);
      }
      all.push(line);
    }
    return all;
  }

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // The backdrop lies on a canvas of its own below, so that a step of time does not draw it again.
  const BACKDROP = [["--minor", 1], ["--middle", 1.6], ["--major", 2.6]];
  function backdrop(map, classes) {
    const pane = map.createPane("roads");
    pane.style.zIndex = 350;
    pane.style.pointerEvents = "none";
    const renderer = L.canvas({pane: "roads", padding: 0.25});
    const group = L.layerGroup();
    const parts = classes.map((of, number) => L.polyline(of, {
      renderer, pane: "roads", interactive: false, smoothFactor: 1.5, weight: BACKDROP[number][1],
    }).addTo(group));
    group.recolour = () => parts.forEach((part, number) => part.setStyle({color: colour(BACKDROP[number][0])}));
    group.recolour();
    return group;
  }

  // Many lines as one layer: `levels[i]` says which of `styles` (width and colour, painted in this order) line i has,
  // 255 for none. A click or a hover leaves the nearest line's number in `hit`.
  const Lines = L.Polyline.extend({
    options: {noClip: true, smoothFactor: 1, weight: 30, fill: false, tolerance: 7},

    initialize(all, styles, options) {
      L.Polyline.prototype.initialize.call(this, all, options);
      this.levels = new Uint8Array(all.length).fill(255);
      this.styles = styles;
      this.hit = -1;
    },

    _project() {
      L.Polyline.prototype._project.call(this);
      const boxes = this._boxes = new Float64Array(4 * this._rings.length);
      this._rings.forEach((ring, i) => {
        let left = Infinity, top = Infinity, right = -Infinity, bottom = -Infinity;
        for (const {x, y} of ring) {
          left = Math.min(left, x);
          right = Math.max(right, x);
          top = Math.min(top, y);
          bottom = Math.max(bottom, y);
        }
        boxes.set([left, top, right, bottom], 4 * i);
      });
    },

    _near(i, min, max, by) {
      const boxes = this._boxes, b = 4 * i;
      return boxes[b] <= max.x + by && boxes[b + 2] >= min.x - by && boxes[b + 1] <= max.y + by && boxes[b + 3] >= min.y - by;
    },

    _updatePath() {
      const renderer = this._renderer;
      if (!renderer._drawing || !this._parts.length) return;
      const context = renderer._ctx, view = renderer._redrawBounds || renderer._bounds;
      const members = this.styles.map(() => []);
      this.levels.forEach((level, i) => {
        if (level !== 255 && this._near(i, view.min, view.max, 15)) members[level].push(i);
      });
      context.lineCap = context.lineJoin = "round";
      context.globalAlpha = 1;
      members.forEach((mine, level) => {
        if (!mine.length) return;
        const [width, stroke] = this.styles[level];
        context.beginPath();
        for (const i of mine) {
          const part = this._parts[i];
          context.moveTo(part[0].x, part[0].y);
          for (let k = 1; k < part.length; k += 1) context.lineTo(part[k].x, part[k].y);
        }
        context.lineWidth = width;
        context.strokeStyle = stroke;
        context.stroke();
      });
    },

    _containsPoint(point) {
      const reach = this.options.tolerance + (L.Browser.touch && L.Browser.mobile ? 6 : 0);
      let best = reach, hit = -1;
      for (let i = 0; i < this._parts.length; i += 1) {
        if (!this._near(i, point, point, reach)) continue;
        const part = this._parts[i];
        // Of the two directions of a street, which lie on each other, the one painted on top.
        const lead = this.levels[i] === 255 ? 0 : 0.5 + 0.5 * this.levels[i];
        for (let k = 1; k < part.length; k += 1) {
          const far = L.LineUtil.pointToSegmentDistance(point, part[k - 1], part[k]);
          if (far <= reach && far - lead < best) {
            best = far - lead;
            hit = i;
          }
        }
      }
      if (hit >= 0) this.hit = hit;
      return hit >= 0;
    },

    // Take new levels, and paint again only where they changed. Returns how many did.
    setLevels(levels) {
      let changed = 0;
      const area = new L.Bounds();
      for (let i = 0; i < levels.length; i += 1) {
        if (levels[i] === this.levels[i]) continue;
        this.levels[i] = levels[i];
        changed += 1;
        if (this._boxes) {
          area.extend([this._boxes[4 * i], this._boxes[4 * i + 1]]);
          area.extend([this._boxes[4 * i + 2], this._boxes[4 * i + 3]]);
        }
      }
      if (changed && this._map && area.isValid()) this._renderer._requestRedraw({_pxBounds: area, options: {weight: this.options.weight}});
      return changed;
    },

    setStyles(styles) {
      this.styles = styles;
      if (this._map) this.redraw();
    },
  });

  // Let two maps of the same size show the same place, without projecting the roads again while one is dragged.
  function synchronise(maps) {
    let leading = null;
    const lead = (map, act) => {
      if (leading) return;
      leading = map;
      act();
      leading = null;
    };
    maps.forEach((map, number) => {
      const other = maps[1 - number];
      const follow = () => {
        if (map.getZoom() !== other.getZoom()) {
          other.setView(map.getCenter(), map.getZoom(), {animate: false});
          return;
        }
        const offset = other.project(map.getCenter()).subtract(other.project(other.getCenter())).round();
        if (offset.x || offset.y) {
          other._rawPanBy(offset);
          other.fire("move");
        }
      };
      // Two fingers change the zoom with every frame: the other map follows once they are done.
      map.on("move", (event) => { if (!event.pinch) lead(map, follow); });
      map.on("moveend", () => lead(map, () => { follow(); other.fire("moveend"); }));
    });
  }

  return {unpack, lines, colour, backdrop, Lines, synchronise};
})();
