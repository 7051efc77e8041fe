// Draws the picture of memory, its addresses and zones, and its legend.

function drawMap() {
  byId("map").hidden = byId("readout").hidden = byId("key").hidden = byId("tools").hidden = !picture;
  byId("nothing").hidden = Boolean(picture);
  byId("memory").classList.toggle("past", chosen !== null);
  if (!picture) {
    setText("when", "");
    setText("level", "");
    return;
  }
  const { context } = canvasOf("map");
  const at = shown();
  const cells = visible(at);
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.clearRect(0, 0, at.edge + at.width, at.height);
  context.save();
  context.beginPath();
  context.rect(at.edge, 0, at.width, at.height);
  context.clip();
  context.translate(at.edge, 0);
  const per = drawBlocks(context, at);
  const isByPage = hasPages(at, cells);
  const uses = isByPage ? drawPages(context, at, cells) : null;
  drawLines(context, at, cells, isByPage);
  drawMark(context, at, isByPage);
  context.restore();
  drawGutter(context, at, cells);
  drawLegend(uses);
  tellLevel(at, per, isByPage);
}

const xOf = (at, x) => Math.round((x - at.left) * at.zoom);
const yOf = (at, y) => Math.round((y - at.top) * at.zoom);

// Draws the blocks; returns how many share a cell of the picture.
function drawBlocks(context, at) {
  const { layout } = picture;
  const wide = layout.boxWidth * at.zoom;
  const high = layout.boxHeight * at.zoom;
  let [i, j] = [0, 0];
  while (wide * 2 ** i < 1) i += 1;
  while (high * 2 ** j < 1) j += 1;
  const image = imageOf(cellsOf(i, j));
  context.imageSmoothingEnabled = false;
  const width = layout.boxWidth * 2 ** i;
  const height = layout.boxHeight * 2 ** j;
  context.drawImage(image, -at.left * at.zoom, -at.top * at.zoom, image.width * width * at.zoom, image.height * height * at.zoom);
  return 2 ** (i + j);
}

// Draws the pages that were loaded and asks for the others; returns how many pages there are of each
// use.
function drawPages(context, at, { fromColumn, toColumn, fromRow, toRow }) {
  const { layout, map } = picture;
  const wanted = new Set();
  const counts = new Uint32Array(256);
  let names = [];
  for (let row = fromRow; row < toRow; row += 1) {
    for (let column = fromColumn; column < toColumn; column += 1) {
      const block = layout.blockAt(column, row);
      if (block === null) continue;
      const number = Math.floor(block * layout.size / PART);
      wanted.add(number);
      const part = frames.part(number);
      if (!part) continue;
      const first = block * layout.size - number * PART;
      const x = xOf(at, column * layout.boxWidth);
      const y = yOf(at, row * layout.boxHeight);
      const right = xOf(at, (column + 1) * layout.boxWidth);
      const bottom = yOf(at, (row + 1) * layout.boxHeight);
      context.drawImage(pictureOf(part, layout.boxWidth), 0, first / layout.boxWidth, layout.boxWidth, layout.boxHeight, x, y, right - x, bottom - y);
      names = part.uses;
      for (let page = first; page < first + layout.size; page += 1) counts[part.codes[page]] += 1;
    }
  }
  frames.want([...wanted].sort((a, b) => a - b), map.time_ms);
  return new Map(names.map((name, code) => [name, counts[code]]).filter(([, count]) => count > 0));
}

// Draws borders of pages and blocks where they are wide enough, and numbers of frames.
function drawLines(context, at, cells, isByPage) {
  const { layout } = picture;
  const { fromColumn, toColumn, fromRow, toRow } = cells;
  const grid = (stepX, stepY, thick) => {
    context.fillStyle = paperColour();
    const right = xOf(at, toColumn * layout.boxWidth);
    const bottom = yOf(at, toRow * layout.boxHeight);
    for (let x = fromColumn * layout.boxWidth; x <= toColumn * layout.boxWidth; x += stepX) {
      context.fillRect(xOf(at, x) - (thick >> 1), 0, thick, bottom);
    }
    for (let y = fromRow * layout.boxHeight; y <= toRow * layout.boxHeight; y += stepY) {
      context.fillRect(0, yOf(at, y) - (thick >> 1), right, thick);
    }
  };
  const pixel = Math.max(1, Math.round(at.scale));
  if (isByPage && at.zoom >= 6 * at.scale) grid(1, 1, pixel);
  const high = layout.boxHeight * at.zoom / at.scale;
  if (high >= 4) grid(layout.boxWidth, layout.boxHeight, isByPage ? 3 * pixel : high >= 24 ? 2 * pixel : pixel);
  if (isByPage && at.zoom >= 60 * at.scale) drawNumbers(context, at);
}

// Writes into each page the number of its frame, as the kernel's messages have it.
function drawNumbers(context, at) {
  const { layout } = picture;
  context.font = `${Math.round(10 * at.scale)}px ui-monospace, "DejaVu Sans Mono", monospace`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  for (let y = Math.floor(at.top); y < at.top + at.height / at.zoom; y += 1) {
    for (let x = Math.floor(at.left); x < at.left + at.width / at.zoom; x += 1) {
      const frame = layout.frameAt(x, y);
      const use = frame === null ? null : frames.use(frame);
      if (use === null) continue;
      const entry = entryOf(USES, use);
      context.fillStyle = textOn(colourOf(entry));
      context.fillText(frame.toString(16), xOf(at, x + 0.5), yOf(at, y + 0.5) - 7 * at.scale);
      context.fillText(entry[1], xOf(at, x + 0.5), yOf(at, y + 0.5) + 7 * at.scale, at.zoom * 0.92);
    }
  }
  context.textAlign = "left";
}

// Returns black or white, whichever is read better on a colour.
function textOn(colour) {
  const [red, green, blue] = [1, 3, 5].map((at) => (parseInt(colour.slice(at, at + 2), 16) / 255) ** 2.2);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.18 ? "#000000" : "#ffffff";
}

// Draws a frame around what the readout tells of.
function drawMark(context, at, isByPage) {
  const { layout } = picture;
  const frame = told();
  if (frame === null) return;
  const block = Math.floor(frame / layout.size) * layout.size;
  const frameOf = (first, width, height) => {
    const place = layout.placeOf(first);
    const x = xOf(at, place.x);
    const y = yOf(at, place.y);
    const right = Math.max(x + 3 * at.scale, xOf(at, place.x + width));
    const bottom = Math.max(y + 3 * at.scale, yOf(at, place.y + height));
    for (const [colour, out] of [[paperColour(), 2], [inkColour(), 1]]) {
      context.strokeStyle = colour;
      context.lineWidth = out === 2 ? 4 * at.scale : 2 * at.scale;
      context.strokeRect(x - at.scale, y - at.scale, right - x + 2 * at.scale, bottom - y + 2 * at.scale);
    }
  };
  frameOf(block, layout.boxWidth, layout.boxHeight);
  if (isByPage) frameOf(frame, 1, 1);
}

// Writes where rows begin, and draws a line where a zone does.
function drawGutter(context, at, { fromRow, toRow }) {
  const { layout } = picture;
  const size = 11 * at.scale;
  const isNarrow = at.edge < GUTTER_WIDE * at.scale;
  const taken = [];
  const write = (text, row, font, colour) => {
    const y = Math.max(size / 2 + 1, yOf(at, row * layout.boxHeight) + size / 2 + 2 * at.scale);
    if (y > at.height || taken.some((other) => Math.abs(other - y) < 1.15 * size)) return;
    taken.push(y);
    context.font = font;
    context.fillStyle = colour;
    context.textAlign = "right";
    context.textBaseline = "middle";
    context.fillText(text, at.edge - 6 * at.scale, y, at.edge - 8 * at.scale);
  };
  const bold = `600 ${size}px system-ui, sans-serif`;
  const mono = `${10 * at.scale}px ui-monospace, "DejaVu Sans Mono", monospace`;
  const strips = layout.strips.filter((strip) => strip.row < toRow && strip.row + strip.rows > fromRow);
  for (const strip of strips) {
    if (strip.row < fromRow) continue;
    context.fillStyle = inkColour();
    const thick = Math.max(1, Math.round(at.scale));
    const isZone = strip.names.length > 0;
    const from = isZone ? 0.35 * at.edge : at.edge;
    if (strip.row > 0) context.fillRect(from, yOf(at, strip.row * layout.boxHeight) - thick, isZone ? at.edge + at.width - from : at.width, thick);
  }
  // The largest zones have their names first, if there is no room for all.
  for (const strip of [...strips].sort((a, b) => b.rows - a.rows)) {
    const name = layout.strips.findLast((named) => named.row <= strip.row && named.names.length > 0)?.names.join(", ") ?? "";
    if (strip.names.length > 0 || strip.row < fromRow) write(name, Math.max(strip.row, at.top / layout.boxHeight), bold, inkColour());
  }
  // The address of the first page that is visible in a row, of blocks or of pages.
  const isByPage = hasPages(at) && at.zoom >= 12 * at.scale;
  const high = isByPage ? 1 : layout.boxHeight;
  const step = 2 ** Math.ceil(Math.log2(Math.max(1, 34 * at.scale / (high * at.zoom))));
  const x = isByPage ? Math.floor(at.left) : Math.floor(at.left / layout.boxWidth) * layout.boxWidth;
  for (const strip of strips) {
    const end = Math.min(toRow, strip.row + strip.rows) * layout.boxHeight;
    for (let y = strip.row * layout.boxHeight; y < end; y += step * high) {
      const frame = y * at.zoom < at.top * at.zoom - size ? null : layout.frameAt(x, y);
      if (frame === null) continue;
      const address = frame * now.frame_bytes;
      write(isNarrow ? sizeOfAddress(address) : hex(address), y / layout.boxHeight, mono, faintColour());
    }
  }
  context.textAlign = "left";
}

// Where there is no room for an address in full.
function sizeOfAddress(address) {
  return address < 2 ** 30 ? bytesText(address) : `${(address / 2 ** 30).toFixed(2)} GiB`;
}

// `uses` counts the pages that are visible, or is null: then the legend is of all page blocks.
function drawLegend(uses) {
  const { map } = picture;
  const counts = new Map();
  if (uses === null) for (const [, blocks, kind] of map.runs) counts.set(map.kinds[kind], (counts.get(map.kinds[kind]) ?? 0) + blocks);
  const entries = uses === null ? KINDS : USES;
  const found = uses ?? counts;
  const known = Object.keys(entries).filter((name) => found.has(name));
  const names = [...known, ...[...found.keys()].filter((name) => !known.includes(name))];
  const list = byId("legend");
  const state = JSON.stringify([names, dark.matches, uses === null]);
  if (list.dataset.state !== state) {
    list.dataset.state = state;
    highlighted = names.includes(highlighted) ? highlighted : null;
    list.replaceChildren(...names.map((name) => {
      const [letter, label] = entryOf(entries, name);
      const swatch = element("span", letter, "swatch");
      swatch.style.background = colourOf(entryOf(entries, name));
      swatch.style.color = textOn(colourOf(entryOf(entries, name)));
      swatch.setAttribute("aria-hidden", "true");
      const button = element("button");
      button.type = "button";
      button.dataset.name = name;
      button.append(swatch, label, " ", element("span", "", "count"));
      button.addEventListener("click", () => {
        highlighted = highlighted === name ? null : name;
        repaint();
      });
      const item = element("li");
      item.append(button);
      return item;
    }));
  }
  for (const button of list.querySelectorAll("button")) {
    const count = found.get(button.dataset.name);
    const text = countText(count);
    if (button.lastChild.textContent !== text) button.lastChild.textContent = text;
    const [, label, meaning] = entryOf(entries, button.dataset.name);
    button.title = `${label}${meaning === "" ? "" : `: ${meaning}`}; ${framesText(uses === null ? count * picture.layout.size : count)}`;
    button.setAttribute("aria-pressed", String(highlighted === button.dataset.name));
  }
  setText("legend-of", uses === null ? "page blocks of all memory" : "pages of the visible blocks");
}

// Says what a cell is, and of when.
function tellLevel(at, per, isByPage) {
  const { layout, map } = picture;
  const block = framesText(layout.size);
  const width = Math.min(layout.width, at.width / at.zoom);
  const height = Math.min(layout.height, at.height / at.zoom);
  const cell = isByPage ? `a cell is a page of ${bytesText(now.frame_bytes)}`
    : per === 1 ? `a cell is a page block of ${block}`
      : `a pixel is up to ${per} page blocks of ${block}, of which the worst shows`;
  const part = view ? `${framesText(Math.min(width * height, layout.blocks * layout.size))} of ` : "";
  setText("level", `${part}${framesText(layout.blocks * layout.size)}; ${cell}; a row of blocks is ${framesText(layout.columns * layout.size)}`);
  byId("level").title = byId("level").textContent;
  const loading = isByPage && frames.isLoading ? "; loading pages" : "";
  setText("when", chosen === null ? `live, state of ${timeText(map.time_ms)}${loading}` : `history: ${timeText(map.time_ms)}, page blocks only`);
  byId("out").disabled = byId("whole").disabled = !view;
  byId("in").disabled = at.zoom >= PAGE_LARGEST * at.scale;
  byId("map").classList.toggle("moved", Boolean(view));
  tellPoint();
}

// ---- the readout

function tellPoint() {
  const frame = told();
  byId("readout").setAttribute("aria-live", cursor ? "polite" : "off");
  setText("readout", frame === null ? "Wheel, pinch or + and − zoom; drag or arrow keys move; 0 shows all; n and p lead to the next and the previous mixed block." : describe(frame));
}

function describe(frame) {
  const { layout } = picture;
  const at = shown();
  const block = Math.floor(frame / layout.size);
  const first = block * layout.size;
  const zone = now.zones.find((zone) => frame >= zone.start_frame && frame < zone.start_frame + zone.frames);
  const where = zone ? `zone ${zone.name}, node ${zone.node}` : "no zone";
  const [, kind, meaning] = entryOf(KINDS, kindOf(block));
  const inside = composition(first);
  if (hasPages(at)) {
    const use = frames.use(frame);
    const [, name, about] = entryOf(USES, use ?? "");
    const is = use === null ? "not loaded yet" : about === "" ? name : `${name} (${about})`;
    return `frame ${hex(frame)}, address ${hex(frame * now.frame_bytes)}, ${where}: ${is}. Its page block is ${kind}${inside}.`;
  }
  return `page block ${hex(block)}, frames ${hex(first)} to ${hex(first + layout.size - 1)}, address ${hex(first * now.frame_bytes)}, ${where}: ${kind}, ${meaning}${inside}.`;
}

// Says what is in a block whose pages were loaded.
function composition(first) {
  if (chosen !== null) return "";
  const counts = new Map();
  for (let frame = first; frame < first + picture.layout.size; frame += 1) {
    const use = frames.use(frame);
    if (use === null) return "";
    counts.set(use, (counts.get(use) ?? 0) + 1);
  }
  const parts = [...counts].sort((a, b) => b[1] - a[1]).map(([use, count]) => `${countText(count)} ${entryOf(USES, use)[1]}`);
  return `: ${parts.join(", ")}`;
}
