// The picture of memory: every page block, and every page where they are large enough; it is moved and
// zoomed like a map. Blocks are an image of a pixel each, which the browser enlarges, so that a
// terabyte moves as smoothly as a gigabyte.

// A page is drawn if its side has so many CSS pixels, and if no more of them are visible.
const PAGE_LEAST = 3;
const PAGES_MOST = 327680;
const PAGE_LARGEST = 72;
const GUTTER_WIDE = 92;
const GUTTER_NARROW = 58;

// The map and how it is drawn, or null: {map, ends of its runs, layout, levels}.
let picture = null;
// The middle of what is shown, in the plane of the layout, and canvas pixels per page; null for all.
let view = null;
let pointed = null; // The frame under the pointer, or null.
let cursor = null; // The point in the plane that keys have moved to, or null: then the readout is of it.
let asked = null; // The view of a link, until there is a map: {frame, across}.

const frames = new Frames(() => schedule(), (error) => showTrouble(error));

const scaleOfScreen = () => Math.min(devicePixelRatio || 1, 3);

// Takes a map, or null: there is none.
function setMap(map) {
  const before = picture;
  const keeps = picture && view ? middle() : null;
  if (map === null || map.runs.length === 0) {
    picture = null;
    return;
  }
  // What is hidden has no size.
  byId("map").hidden = false;
  picture = { map, layout: null, levels: [], ends: map.runs.map(([first, blocks]) => first + blocks) };
  arrange();
  if (asked) {
    lookAt(asked.frame, asked.across);
    asked = null;
  } else if (!before || !picture.layout.isLike(before.layout)) {
    cursor = null;
    if (keeps) lookAt(keeps.frame, keeps.across);
  }
}

// Lays the map out for the width of the window.
function arrange() {
  const canvas = byId("map");
  const wide = Math.max(100, canvas.parentElement.clientWidth - gutter());
  const high = Math.max(260, Math.min(innerHeight * (wide < 600 ? 0.6 : 0.56), wide * 1.4));
  const { map } = picture;
  const absent = map.kinds.indexOf("absent");
  const blocks = map.runs.reduce((sum, run) => sum + (run[2] === absent ? 0 : run[1]), 0);
  const columns = columnsFor(Math.max(1, blocks), map.block_order, high / wide);
  picture.layout = new Layout(map, now.zones, columns);
  picture.levels = [];
  const { width, height } = picture.layout;
  canvas.style.height = `${Math.round(Math.max(160, Math.min(1.25 * high, wide * height / width)))}px`;
}

const gutter = () => (byId("map").parentElement.clientWidth < 700 ? GUTTER_NARROW : GUTTER_WIDE);

// Returns a canvas's context and its size in its own pixels.
function canvasOf(id) {
  const canvas = byId(id);
  const scale = scaleOfScreen();
  const width = Math.max(1, Math.round(canvas.clientWidth * scale));
  const height = Math.max(1, Math.round(canvas.clientHeight * scale));
  if (canvas.width !== width || canvas.height !== height) {
    canvas.width = width;
    canvas.height = height;
  }
  return { context: canvas.getContext("2d"), width, height, scale };
}

// Returns what is shown: `zoom` canvas pixels a page, from the point `left`, `top` of the plane on.
function shown() {
  const { width: canvasWidth, height, scale } = canvasOf("map");
  const edge = Math.round(gutter() * scale);
  const width = Math.max(1, canvasWidth - edge);
  const { layout } = picture;
  const fit = Math.min(width / layout.width, height / layout.height);
  const zoom = view ? Math.max(fit, Math.min(PAGE_LARGEST * scale, view.zoom)) : fit;
  const begin = (at, size, all) => (all * zoom <= size ? 0 : Math.max(0, Math.min(all - size / zoom, at - size / zoom / 2)));
  const left = view ? begin(view.x, width, layout.width) : 0;
  const top = view ? begin(view.y, height, layout.height) : 0;
  return { left, top, zoom, fit, width, height, edge, scale };
}

// Returns the frame in the middle and how many pages lie across.
function middle() {
  const { left, top, zoom, width, height } = shown();
  const { layout } = picture;
  const x = Math.min(layout.width, left + width / zoom / 2);
  const y = Math.min(layout.height - 0.5, top + height / zoom / 2);
  let frame = null;
  // At the end of a zone a row is not full.
  for (let column = x; frame === null && column >= 0; column -= layout.boxWidth) frame = layout.frameAt(column, y);
  return { frame: frame ?? 0, across: width / zoom };
}

// Shows this frame in the middle, with so many pages across.
function lookAt(frame, across) {
  const place = picture.layout.placeOf(frame);
  const { width } = shown();
  view = { x: place.x + 0.5, y: place.y + 0.5, zoom: width / Math.max(1, across) };
  settle();
}

// All of memory is a view of its own, which stays all when the window changes.
function settle() {
  if (!view) return;
  const { left, top, zoom, fit, width, height } = shown();
  view = zoom <= fit * 1.001 ? null : { x: left + width / zoom / 2, y: top + height / zoom / 2, zoom };
}

// Zooms so that the point, in canvas pixels, stays where it is; the middle if none is given.
function zoomBy(by, point) {
  if (!picture) return;
  const { left, top, zoom, width, height, scale, fit, edge } = shown();
  const x = point ? point.x - edge : width / 2;
  const y = point ? point.y : height / 2;
  const next = Math.max(fit, Math.min(PAGE_LARGEST * scale, zoom * by));
  view = {
    x: left + x / zoom + (width / 2 - x) / next,
    y: top + y / zoom + (height / 2 - y) / next,
    zoom: next,
  };
  settle();
  schedule();
}

function moveBy(x, y) {
  if (!picture || !view) return;
  view = { ...view, x: view.x + x, y: view.y + y };
  settle();
  schedule();
}

// Moves the cursor by so much, into view.
function moveCursor(x, y) {
  const { layout } = picture;
  const within = (at, all) => Math.max(0.5, Math.min(all - 0.5, Math.floor(at) + 0.5));
  cursor = { x: within(cursor.x + x, layout.width), y: within(cursor.y + y, layout.height) };
  if (view) {
    const { left, top, zoom, width, height } = shown();
    const beyond = (at, from, size) => Math.min(0, at - from - size / 12) + Math.max(0, at - from - size * 11 / 12);
    moveBy(beyond(cursor.x, left, width / zoom), beyond(cursor.y, top, height / zoom));
  }
  schedule();
}

// Returns the frame that the readout tells of, or null.
function told() {
  return cursor ? picture.layout.frameAt(cursor.x, cursor.y) : pointed;
}

function showAll() {
  view = null;
  schedule();
}

// ---- blocks

// Returns the name of a block's kind.
function kindOf(block) {
  const { map, ends } = picture;
  let low = 0;
  let high = ends.length;
  while (low < high) {
    const half = (low + high) >> 1;
    if (ends[half] > block) high = half;
    else low = half + 1;
  }
  const run = map.runs[low];
  return run && run[0] <= block ? map.kinds[run[2]] : "absent";
}

// Returns cells of the picture: ranks in WORST, 255 where nothing is. In level (i, j) a cell is 2^i
// columns and 2^j rows.
function cellsOf(i, j) {
  const { layout, map, levels } = picture;
  const known = levels.find((level) => level.i === i && level.j === j);
  if (known) return known;
  let level;
  if (i === 0 && j === 0) {
    const cells = new Uint8Array(layout.columns * layout.rows).fill(255);
    const absent = WORST.indexOf("absent");
    for (const strip of layout.strips) {
      const from = strip.row * layout.columns;
      cells.fill(absent, from, from + strip.end - strip.first);
    }
    const ranks = map.kinds.map((name) => Math.max(0, WORST.indexOf(name)));
    let at = 0;
    for (const strip of layout.strips) {
      while (at > 0 && picture.ends[at - 1] > strip.first) at -= 1;
      for (; at < map.runs.length && map.runs[at][0] < strip.end; at += 1) {
        const from = Math.max(strip.first, map.runs[at][0]);
        const to = Math.min(strip.end, picture.ends[at]);
        const base = strip.row * layout.columns - strip.first;
        if (from < to) cells.fill(ranks[map.runs[at][2]], base + from, base + to);
      }
    }
    level = { i, j, cells, columns: layout.columns, rows: layout.rows };
  } else {
    const finer = j > 0 ? cellsOf(i, j - 1) : cellsOf(i - 1, j);
    const [across, down] = j > 0 ? [1, 2] : [2, 1];
    const columns = Math.ceil(finer.columns / across);
    const rows = Math.ceil(finer.rows / down);
    const cells = new Uint8Array(columns * rows).fill(255);
    for (let y = 0; y < finer.rows; y += 1) {
      const to = (j > 0 ? y >> 1 : y) * columns;
      for (let x = 0; x < finer.columns; x += 1) {
        const cell = to + (j > 0 ? x : x >> 1);
        cells[cell] = Math.min(cells[cell], finer.cells[y * finer.columns + x]);
      }
    }
    level = { i, j, cells, columns, rows };
  }
  levels.push(level);
  return level;
}

// Returns a level as an image of a pixel a cell.
function imageOf(level) {
  if (level.image) return level.image;
  const canvas = document.createElement("canvas");
  canvas.width = level.columns;
  canvas.height = level.rows;
  const context = canvas.getContext("2d");
  const image = context.createImageData(canvas.width, canvas.height);
  const pixels = new Uint32Array(image.data.buffer);
  const colours = new Uint32Array(256);
  WORST.forEach((name, rank) => { colours[rank] = pixelOf(name, KINDS[name]); });
  for (let at = 0; at < pixels.length; at += 1) pixels[at] = colours[level.cells[at]];
  context.putImageData(image, 0, 0);
  level.image = canvas;
  return canvas;
}

// Colours have changed.
function repaint() {
  for (const level of picture?.levels ?? []) level.image = null;
  frames.repaint();
  schedule();
}

// Returns the visible cells of blocks.
function visible({ left, top, zoom, width, height }) {
  const { layout } = picture;
  return {
    fromColumn: Math.floor(left / layout.boxWidth),
    toColumn: Math.min(layout.columns, Math.ceil((left + width / zoom) / layout.boxWidth)),
    fromRow: Math.floor(top / layout.boxHeight),
    toRow: Math.min(layout.rows, Math.ceil((top + height / zoom) / layout.boxHeight)),
  };
}

// Returns true if pages are drawn one by one.
function hasPages(at, cells = visible(at)) {
  const { layout } = picture;
  const pages = (cells.toColumn - cells.fromColumn) * (cells.toRow - cells.fromRow) * layout.size;
  return chosen === null && now.frames !== null && layout.size <= PART
    && at.zoom / at.scale >= PAGE_LEAST && pages <= PAGES_MOST;
}
