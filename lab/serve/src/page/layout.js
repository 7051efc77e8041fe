// Where each page block and each page lies in the picture: in a plane whose unit is the side of a
// page. A block is a box of pages, twice as wide as high if its order is odd; boxes follow each other
// in rows. Every zone begins a row, and so does memory after a hole of many rows, which is left out.

const HOLE_ROWS = 4;

class Layout {
  // `runs` are [first block, blocks, kind] in order; `kinds` are the names of kinds.
  constructor({ runs, kinds, block_order: order }, zones, columns) {
    this.order = order;
    this.size = 2 ** order;
    this.boxWidth = 2 ** Math.ceil(order / 2);
    this.boxHeight = 2 ** Math.floor(order / 2);
    this.columns = columns;
    this.strips = [];
    this.rows = 0;
    this.blocks = 0;
    const absent = kinds.indexOf("absent");
    const present = runs.filter((run) => run[2] !== absent);
    let at = 0;
    let next = 0;
    for (const zone of spans(zones, this.size, present)) {
      const first = Math.max(zone.first, at);
      if (zone.end <= first) {
        // Zones of nodes that lie within each other share their blocks.
        if (this.strips.length > 0) this.strips[this.strips.length - 1].names.push(zone.name);
        continue;
      }
      at = zone.end;
      let strip = null;
      while (next < present.length && present[next][0] < zone.end) {
        const from = Math.max(first, present[next][0]);
        const to = Math.min(zone.end, present[next][0] + present[next][1]);
        if (from < to) {
          if (strip === null || from - strip.end > HOLE_ROWS * columns) {
            if (strip !== null) this.add(strip);
            strip = { first: from, end: to, names: strip === null ? [zone.name] : [], row: 0, rows: 0 };
          }
          strip.end = to;
        }
        // A run across the border of zones is in both.
        if (present[next][0] + present[next][1] > zone.end) break;
        next += 1;
      }
      if (strip !== null) this.add(strip);
    }
    this.width = columns * this.boxWidth;
    this.height = this.rows * this.boxHeight;
  }

  add(strip) {
    strip.row = this.rows;
    strip.rows = Math.ceil((strip.end - strip.first) / this.columns);
    this.rows += strip.rows;
    this.blocks += strip.end - strip.first;
    this.strips.push(strip);
  }

  // Returns true if every page lies where it does in another layout.
  isLike(other) {
    const shape = ({ order, columns, strips }) => JSON.stringify([order, columns, strips.map(({ first, end }) => [first, end])]);
    return shape(this) === shape(other);
  }

  // Returns the strip of a row, or null.
  stripAt(row) {
    return row < 0 ? null : this.strips.findLast((strip) => strip.row <= row && row < strip.row + strip.rows) ?? null;
  }

  // Returns the block in a cell, or null where none is.
  blockAt(column, row) {
    const strip = column < 0 || column >= this.columns ? null : this.stripAt(row);
    if (strip === null) return null;
    const block = strip.first + (row - strip.row) * this.columns + column;
    return block < strip.end ? block : null;
  }

  // Returns the frame at a point of the plane, or null.
  frameAt(x, y) {
    const column = Math.floor(x / this.boxWidth);
    const row = Math.floor(y / this.boxHeight);
    const block = this.blockAt(column, row);
    if (block === null) return null;
    const across = Math.floor(x) - column * this.boxWidth;
    const down = Math.floor(y) - row * this.boxHeight;
    return block * this.size + down * this.boxWidth + across;
  }

  // Returns the left upper corner of a frame, or of the nearest that is shown.
  placeOf(frame) {
    const wanted = Math.floor(frame / this.size);
    const strip = this.strips.findLast((strip) => strip.first <= wanted) ?? this.strips[0];
    const block = Math.max(strip.first, Math.min(strip.end - 1, wanted));
    const cell = block - strip.first;
    const within = block === wanted ? frame - block * this.size : 0;
    return {
      x: cell % this.columns * this.boxWidth + within % this.boxWidth,
      y: (strip.row + Math.floor(cell / this.columns)) * this.boxHeight + Math.floor(within / this.boxWidth),
    };
  }
}

// Returns zones as spans of blocks, in order; memory outside of all is a span of its own.
function spans(zones, size, present) {
  const nodes = new Set(zones.map((zone) => zone.node));
  const found = zones.filter((zone) => zone.frames > 0).map((zone) => ({
    name: nodes.size > 1 ? `${zone.name} ${zone.node}` : zone.name,
    first: Math.floor(zone.start_frame / size),
    end: Math.ceil((zone.start_frame + zone.frames) / size),
  }));
  found.sort((a, b) => a.first - b.first);
  const all = [];
  let at = 0;
  for (const span of found) {
    if (span.first > at) all.push({ name: "no zone", first: at, end: span.first });
    all.push(span);
    at = Math.max(at, span.end);
  }
  const end = present.length === 0 ? 0 : present[present.length - 1][0] + present[present.length - 1][1];
  if (end > at) all.push({ name: "no zone", first: at, end });
  return all;
}

// Returns how many blocks a row has, so that a row is a round number of bytes and the picture is
// about `ratio` times as high as wide.
function columnsFor(blocks, order, ratio) {
  const aspect = 2 ** (Math.ceil(order / 2) - Math.floor(order / 2));
  const exact = Math.sqrt(blocks / (aspect * ratio));
  const round = [1, 1.5].flatMap((part) => Array.from({ length: 20 }, (_, power) => part * 2 ** (power + 1)));
  const away = (columns) => Math.abs(Math.log(columns / exact));
  return round.reduce((a, b) => (away(b) < away(a) ? b : a));
}
