// One film's card: the picture, the page under the pointer, the strip of shares over time, the counts.

// Zoom and position, shared by all pictures: the point in the middle as fractions of width and height.
const view = { zoom: 1, x: 0.5, y: 0.5 };
const ZOOM_MAX = 256;
// The kind that is highlighted, or null.
let highlighted = null;

class Picture {
  constructor(film) {
    this.film = film;
    this.shot = film.shots.length - 1;
    this.source = element("canvas");
    this.canvas = element("canvas", { class: "view", tabindex: "0", role: "img" });
    this.huge = element("span", { class: "huge" });
    this.probeText = element("div", { class: "probe muted" });
    this.strip = element("canvas", { "aria-hidden": "true" });
    this.now = element("i");
    this.counts = element("ul", { class: "counts", "aria-label": "Pages of each kind" });
    this.numbers = element("dl", { class: "numbers" });
    this.countTexts = new Map(SHOWN.map((kind) => {
      const text = element("span");
      this.counts.append(element("li", { title: KINDS[kind].name }, swatch(kind), text));
      return [kind, text];
    }));
    this.stripFrame = element("div", { class: "strip", title: "Share of each kind over time" }, this.strip, this.now);
    const head = element("header", {}, element("h2", {}, lineKey(film.number), film.name), this.huge);
    const frame = element("div", { class: "frame" }, this.canvas);
    this.card = element("section", { class: "card", "aria-label": film.name },
      head, frame, this.probeText, this.stripFrame, this.counts, this.numbers);
  }

  // Sizes the canvas for its card: as wide as the card, and low enough to leave space for the rest.
  resize() {
    const wide = this.canvas.parentElement.clientWidth;
    const high = Math.round(Math.min(wide * 1.02, Math.max(260, (framed ? screen.availHeight : innerHeight) * 0.54)));
    this.ratio = devicePixelRatio || 1;
    this.geometry = new Geometry(this.film, columnsFor(this.film, wide, high));
    const { width, height } = this.geometry;
    const scale = Math.min(wide / width, high / height, 24);
    this.canvas.width = Math.max(1, Math.round(wide * this.ratio));
    this.canvas.height = Math.max(1, Math.round(height * scale * this.ratio));
    this.canvas.style.height = `${this.canvas.height / this.ratio}px`;
    this.fit = Math.min(this.canvas.width / width, this.canvas.height / height, 24 * this.ratio);
    this.source.width = width;
    this.source.height = height;
    this.image = this.source.getContext("2d").createImageData(width, height);
    this.paint();
    this.drawStrip();
  }

  show(shot, row, seconds) {
    this.shot = shot;
    this.row = row;
    this.seconds = seconds;
    this.paint();
    this.updateTexts();
  }

  // Paints the cells into the source image, one pixel each.
  paint() {
    if (!this.row || !this.geometry) return;
    const colors = palette();
    const pixels = new Uint32Array(this.image.data.buffer);
    const { width } = this.geometry;
    const row = this.row;
    this.geometry.rows((cell, x, y, length) => {
      let at = y * width + x;
      for (const end = cell + length; cell < end; cell += 1, at += 1) {
        pixels[at] = colors[cell & 1 ? row[cell >> 1] >> 4 : row[cell >> 1] & 15];
      }
    });
    this.source.getContext("2d").putImageData(this.image, 0, 0);
    this.draw();
  }

  // The size of a cell on the canvas in pixels, and the position of the picture's corner.
  get placing() {
    const size = this.fit * view.zoom;
    const corner = (room, length, middle) => {
      const all = length * size;
      if (all <= room + 0.5) return (room - all) / 2;
      return Math.min(0, Math.max(room - all, room / 2 - middle * all));
    };
    const { width, height } = this.geometry;
    return { size, left: corner(this.canvas.width, width, view.x), top: corner(this.canvas.height, height, view.y) };
  }

  // The visible part of the source image.
  get visible() {
    const { size, left, top } = this.placing;
    const { width, height } = this.geometry;
    const x = Math.max(0, Math.floor(-left / size)), y = Math.max(0, Math.floor(-top / size));
    const right = Math.min(width, Math.ceil((this.canvas.width - left) / size));
    const bottom = Math.min(height, Math.ceil((this.canvas.height - top) / size));
    return { x, y, wide: Math.max(1, right - x), high: Math.max(1, bottom - y) };
  }

  draw() {
    if (!this.row || !this.geometry) return;
    const context = this.canvas.getContext("2d");
    const { size, left, top } = this.placing;
    const { x, y, wide, high } = this.visible;
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    let image = this.source, [fromX, fromY, fromWide, fromHigh] = [x, y, wide, high];
    // Between one and four pixels per cell, some cells would be wider than others: enlarge to whole pixels first.
    if (size > 1 && size < 4 && size % 1 !== 0) {
      const times = Math.ceil(size);
      image = scratch(wide * times, high * times);
      const larger = image.getContext("2d");
      larger.imageSmoothingEnabled = false;
      larger.clearRect(0, 0, image.width, image.height);
      larger.drawImage(this.source, x, y, wide, high, 0, 0, wide * times, high * times);
      [fromX, fromY, fromWide, fromHigh] = [0, 0, wide * times, high * times];
    }
    context.imageSmoothingEnabled = size < 4 && size % 1 !== 0;
    context.imageSmoothingQuality = "high";
    context.drawImage(image, fromX, fromY, fromWide, fromHigh, left + x * size, top + y * size, wide * size, high * size);
    if (size >= 7 * this.ratio) this.drawCells(context);
    this.drawBoundaries(context);
    this.drawProbe(context);
    this.canvas.classList.toggle("moved", view.zoom > 1);
  }

  // Draws lines between pages, and the letters of their kinds if there is space.
  drawCells(context) {
    const { size, left, top } = this.placing;
    const { x, y, wide, high } = this.visible;
    const style = getComputedStyle(this.card);
    context.strokeStyle = style.backgroundColor;
    context.lineWidth = Math.max(1, size / 18);
    context.beginPath();
    for (let i = x; i <= x + wide; i += 1) { context.moveTo(left + i * size, 0); context.lineTo(left + i * size, this.canvas.height); }
    for (let i = y; i <= y + high; i += 1) { context.moveTo(0, top + i * size); context.lineTo(this.canvas.width, top + i * size); }
    context.stroke();
    if (size < 13 * this.ratio) return;
    context.font = `600 ${Math.round(Math.min(size * 0.58, 20 * this.ratio))}px ui-monospace, monospace`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    for (let j = y; j < y + high; j += 1) {
      for (let i = x; i < x + wide; i += 1) {
        const place = this.geometry.at(i, j);
        const kind = place ? cellOf(this.row, place.cell) & 7 : ABSENT;
        if (kind <= FREE) continue;
        context.fillStyle = kind === 4 || kind === 5 ? "#ffffffd9" : "#10131ab8";
        context.fillText(KINDS[kind].letter, left + (i + 0.5) * size, top + (j + 0.54) * size);
      }
    }
  }

  // Draws a line to the left of and above each box where a zone starts.
  drawBoundaries(context) {
    const { size, left, top } = this.placing;
    const thick = Math.max(2 * this.ratio, Math.min(size, 6 * this.ratio));
    context.fillStyle = getComputedStyle(this.card).color;
    for (const zone of this.geometry.zones) {
      const [boxX, boxY] = this.geometry.boxAt(zone.firstBox);
      const [x, y] = [left + boxX * size - thick, top + boxY * size - thick];
      const [wide, high] = [this.geometry.across * size + thick, this.geometry.down * size + thick];
      context.fillRect(Math.max(x, Math.min(0, left)), y, wide, thick);
      context.fillRect(Math.max(x, 0), y, thick, high);
      context.fillRect(x, Math.max(y, 0), wide, thick);
    }
  }

  // Outlines the page under the pointer and its box.
  drawProbe(context) {
    const place = this.probed();
    if (!place) return;
    const { size, left, top } = this.placing;
    const [boxX, boxY] = this.geometry.boxAt(place.box);
    const style = getComputedStyle(this.card);
    const outline = (x, y, wide, high, width, color) => {
      context.strokeStyle = color;
      context.lineWidth = width;
      context.strokeRect(left + x * size, top + y * size, wide * size, high * size);
    };
    outline(boxX, boxY, this.geometry.across, this.geometry.down, 4 * this.ratio, style.backgroundColor);
    outline(boxX, boxY, this.geometry.across, this.geometry.down, 2 * this.ratio, style.color);
    outline(place.x, place.y, 1, 1, 3 * this.ratio, style.backgroundColor);
    outline(place.x, place.y, 1, 1, 1.5 * this.ratio, style.color);
  }

  // Returns this picture's cell for the page pointed at, in this or another picture.
  probed() {
    return probe && this.geometry ? this.geometry.find(probe.frame, probe.zone) : null;
  }

  // Returns the cell at a position in the window.
  pointed(clientX, clientY) {
    const bounds = this.canvas.getBoundingClientRect();
    const { size, left, top } = this.placing;
    const x = ((clientX - bounds.left) * this.ratio - left) / size;
    const y = ((clientY - bounds.top) * this.ratio - top) / size;
    return this.geometry.at(x, y);
  }

  // Counts the cells of each kind in a box.
  boxCounts(box) {
    const counts = new Array(KINDS.length).fill(0);
    const [from, to] = this.geometry.cellsOf(box);
    for (let i = from; i < to; i += 1) {
      const cell = cellOf(this.row, i);
      counts[cell & 7] += 1;
    }
    return counts;
  }

  // Describes the page pointed at: lines of text, and the counts of its box.
  describeProbe() {
    const place = this.probed();
    if (!place || !this.row) return null;
    const cell = cellOf(this.row, place.cell);
    const pages = 2 ** this.film.scale;
    const name = KINDS[cell & 7].name;
    const kind = cell & MOSTLY_FREE ? `mostly free, the rest mostly ${name}` : pages > 1 && cell > FREE ? `mostly ${name}` : name;
    const frames = pages > 1 ? `frames ${whole(place.frame)} and ${whole(pages - 1)} more` : `frame ${whole(place.frame)}`;
    const counts = this.boxCounts(place.box);
    const parts = LEGEND.filter((kind) => counts[kind] > 0).map((kind) => `${whole(counts[kind] * pages)} ${KINDS[kind].name}`);
    const where = `zone ${place.zone.name}, box ${whole(place.box)}, ${frames}`;
    return { kind, where, inBox: `${pages > 1 ? "about " : ""}${parts.join(", ")}`, counts, cell };
  }

  updateProbeText() {
    const described = this.describeProbe();
    this.probeText.replaceChildren();
    if (!described) {
      const zones = this.film.zones.slice(0, 6).map((zone) => `${zone.name} ${bytes(zone.frames * this.film.frame_bytes)}`);
      const hint = probe ? "No such page in this memory." : "Point at a page to see its kind and the other pages of its block.";
      this.probeText.append(element("div", {}, hint), element("div", {}, `Zones: ${zones.join(", ")}${this.film.zones.length > 6 ? ", ..." : ""}`));
      return;
    }
    const bar = element("div", { class: "bar" });
    for (const kind of LEGEND) {
      if (described.counts[kind] > 0) bar.append(element("i", { style: `--kind: ${colorOf(kind)}; flex: ${described.counts[kind]}` }));
    }
    const name = element("b", { style: "color: var(--ink)" }, described.kind);
    this.probeText.append(element("div", {}, name, ` \u00b7 ${described.where}`), bar, `In this box: ${described.inBox}`);
  }

  // Updates all texts of the card to the shot shown.
  updateTexts() {
    const shot = this.film.shots[this.shot];
    const present = shot.counts.reduce((sum, count) => sum + count, 0) - shot.counts[ABSENT];
    this.huge.replaceChildren(element("b", {}, whole(shot.free_huge)), ` huge page${shot.free_huge === 1 ? "" : "s"} free`);
    for (const [kind, text] of this.countTexts) {
      const count = shot.counts[kind];
      const amount = kind === ABSENT ? bytes(count * this.film.frame_bytes) : share(count, present);
      text.replaceChildren(element("b", {}, amount), element("span", { class: "name" }, ` ${KINDS[kind].name}`));
      text.title = `${KINDS[kind].name}: ${plural(count, "page")}, ${bytes(count * this.film.frame_bytes)}`;
      text.setAttribute("aria-label", text.title);
    }
    this.numbers.replaceChildren(...shot.numbers.map(([name, value]) =>
      element("div", {}, element("dt", {}, name), element("dd", {}, value))));
    const ended = this.seconds > this.film.end + 1e-6 ? " (this film has ended)" : "";
    this.canvas.setAttribute("aria-label",
      `${this.film.name} at ${duration(shot.seconds)}${ended}: ${plural(shot.free_huge, "huge page")} free, ` +
      SHOWN.filter((kind) => kind !== ABSENT).map((kind) => `${share(shot.counts[kind], present)} ${KINDS[kind].name}`).join(", "));
    this.now.style.left = `${timePart(this.seconds) * 100}%`;
    this.updateProbeText();
  }

  // Draws the shares of the kinds over time, stacked, in the order of the legend.
  drawStrip() {
    const width = Math.max(1, Math.round(this.stripFrame.clientWidth * this.ratio));
    const height = Math.max(1, Math.round(this.stripFrame.clientHeight * this.ratio));
    this.strip.width = width;
    this.strip.height = height;
    const context = this.strip.getContext("2d");
    for (let x = 0; x < width; x += 1) {
      const seconds = (x + 0.5) / width * lastTime;
      if (seconds > this.film.end && lastTime > this.film.end) break;
      const { counts } = this.film.shots[this.film.shotAt(seconds)];
      const present = counts.reduce((sum, count) => sum + count, 0) - counts[ABSENT];
      let bottom = height;
      for (const kind of [5, 4, 3, 2, 6, 1]) {
        const high = counts[kind] / (present || 1) * height;
        context.fillStyle = colorOf(kind);
        context.fillRect(x, bottom - high, 1, high + 0.5);
        bottom -= high;
      }
    }
  }
}

// Returns the colours of cells as 32-bit pixels. A highlighted kind keeps its colour (free pages, whose colour is pale,
// get that of text), and the others fade.
function palette() {
  const colors = new Uint32Array(16);
  const pack = ([red, green, blue]) => (255 << 24 | blue << 16 | green << 8 | red) >>> 0;
  const free = channels(colorOf(FREE));
  for (let kind = 0; kind < KINDS.length; kind += 1) {
    let color = channels(colorOf(kind));
    if (highlighted === FREE && kind === FREE) color = isDark() ? [232, 235, 240] : [20, 24, 31];
    else if (highlighted !== null && highlighted !== kind && kind > FREE) color = mixed(color, free, 0.13);
    colors[kind] = pack(color);
    colors[kind | MOSTLY_FREE] = pack(mixed(color, free, 0.4));
  }
  return colors;
}

const scratchCanvas = element("canvas");
function scratch(width, height) {
  if (scratchCanvas.width < width) scratchCanvas.width = width;
  if (scratchCanvas.height < height) scratchCanvas.height = height;
  return scratchCanvas;
}
