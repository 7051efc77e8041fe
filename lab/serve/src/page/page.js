// The page of a live host: its memory from the whole to a page, now and in the past.
//
// It only asks its own server, by GET. Text from the host, such as names of processes, is only ever
// set as text. Frames are numbers below 2^53, which JavaScript's numbers hold exactly.
"use strict";

const POLL_MS = 5000;
const PATIENCE_MS = 10000;
// So many frames are drawn one by one at most; one answer of the server has no more.
const FRAMES_MOST = 32768;
const FRAMES_LEAST = 64;

const byId = (id) => document.getElementById(id);
const dark = matchMedia("(prefers-color-scheme: dark)");

// Colours in light and in dark, as in the project's other pictures of memory.
const KINDS = {
  absent: ["no memory", "#f7f8fa", "#151920"],
  free: ["free", "#e4e8ee", "#2e3540"],
  movable: ["movable: can be emptied", "#45b97c", "#4cc38a"],
  perhaps: ["in doubt: single pages without a flag", "#f5b324", "#f5bd3d"],
  mixed: ["mixed: movable pages beside ones that cannot move", "#c1121f", "#cf202f"],
  unmovable: ["in use, cannot be moved", "#7b8696", "#8a96a8"],
  huge: ["explicit huge page", "#2166c4", "#3d7de6"],
};
const USES = {
  hole: ["no memory", "#f7f8fa", "#151920"],
  reserved: ["reserved since boot", "#a9b2be", "#6b7686"],
  free: ["free", "#e4e8ee", "#2e3540"],
  untold: ["no flag: per-CPU list, or the kernel's", "#f5b324", "#f5bd3d"],
  anonymous: ["anonymous", "#45b97c", "#4cc38a"],
  file: ["file or shared", "#a5d8bd", "#2b6b4b"],
  slab: ["slab", "#c1121f", "#cf202f"],
  "page-table": ["page table", "#d096e6", "#dca6ee"],
  huge: ["explicit huge page", "#2166c4", "#3d7de6"],
};
// What a cell of several blocks shows: the first of these that is in it.
const WORST = ["mixed", "unmovable", "perhaps", "movable", "huge", "free", "absent"];
const WAYS = {
  now: "now, without help",
  pool: "by nr_hugepages",
  compacted: "after compact_memory",
  dropped: "after sync, drop_caches, compact_memory",
};
const SERIES = [
  ["free_bytes", "free memory", "#2166c4", "#7aaef5", bytesText],
  ["huge_free", "huge pages now", "#12805c", "#4cc38a", countText],
  ["huge_dropped_likely", "huge pages after all help", "#8a5a00", "#f5bd3d", countText],
  ["unusable_huge", "free memory too small for huge pages", "#c1121f", "#ff7b84", (share) => `${(100 * share).toFixed(1)} %`],
  ["blocks_mixed", "mixed page blocks", "#8e44ad", "#dca6ee", countText],
];

const colour = (entry, from) => entry[from + (dark.matches ? 1 : 0)];

let now = null;
let map = null;
let series = null;
let frames = null;
let chosen = null; // A time in the past, or null for live.
let view = null; // {first, count} in frames, or null for all.
let answered = 0;
let failures = 0;

// ---- numbers as text

function countText(count) {
  return count === null || count === undefined ? "–" : Math.round(count).toLocaleString("en-US");
}

function bytesText(bytes) {
  if (bytes === null || bytes === undefined) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  while (bytes >= 1024 && unit < units.length - 1) {
    bytes /= 1024;
    unit += 1;
  }
  return `${unit === 0 || bytes >= 100 ? Math.round(bytes) : bytes.toFixed(1)} ${units[unit]}`;
}

const framesText = (count) => bytesText(count * now.frame_bytes);

function ageText(ms) {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} days`;
}

function timeText(ms) {
  const time = new Date(ms);
  const two = (number) => String(number).padStart(2, "0");
  const day = `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())}`;
  return `${day} ${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}`;
}

// ---- asking

async function ask(path) {
  const answer = await fetch(path, { signal: AbortSignal.timeout(PATIENCE_MS) });
  const body = await answer.json();
  if (!answer.ok) throw new Refused(body.error || `status ${answer.status}`);
  return body;
}

// The server answered, but not with what was asked for.
class Refused extends Error {}

let polling = null;

async function poll() {
  clearTimeout(polling);
  if (document.hidden) return;
  try {
    const newer = await ask("api/now");
    const hasNewMap = newer.frames && (!now || !now.frames || now.frames.time_ms !== newer.frames.time_ms);
    now = newer;
    failures = 0;
    answered = Date.now();
    if (hasNewMap && chosen === null) await loadMap();
    showNow();
    if (!series || Date.now() - series.asked > 60000) await loadSeries();
  } catch (error) {
    failures += 1;
    showTrouble(error);
  }
  polling = setTimeout(poll, POLL_MS * Math.min(12, 1 + failures));
}

async function loadMap() {
  const at = chosen;
  const newer = await ask(at === null ? "api/map" : `api/map?time=${Math.round(at)}`);
  if (at !== chosen) return;
  map = newer;
  map.ends = map.runs.map(([first, blocks]) => first + blocks);
  map.end = map.ends.length === 0 ? 0 : map.ends[map.ends.length - 1];
  frames = null;
  schedule();
}

async function loadSeries() {
  if (!now || !now.history) return;
  const span = Number(byId("span").value);
  const to = now.time_ms + 60000;
  const points = Math.max(50, Math.min(1000, Math.round(byId("time").clientWidth)));
  try {
    const newer = await ask(`api/series?from=${Math.max(0, to - span)}&to=${to}&points=${points}`);
    // Of a span that the history does not fill only what there is.
    const oldest = newer.rows.length > 0 ? newer.rows[0][newer.columns.indexOf("time_ms")] : to - span;
    series = { ...newer, from: Math.max(to - span, Math.min(oldest, to - 600000)), to, asked: Date.now() };
    byId("past").hidden = false;
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    series = { columns: [], rows: [], maps: [], from: to - span, to, asked: Date.now() };
  }
  schedule();
}

// ---- figures

function headline() {
  const free = now.zones.reduce((sum, zone) => sum + zone.free, 0);
  const order = now.huge_order;
  const small = now.zones.reduce((sum, zone) => {
    const sizes = zone.free_blocks.slice(0, order);
    return sum + sizes.reduce((frames, blocks, of) => frames + blocks * 2 ** of, 0);
  }, 0);
  const huge = framesText(2 ** order);
  let text = now.huge_free > 0
    ? `${countText(now.huge_free)} huge pages of ${huge} can be had now. `
    : `No huge page of ${huge} can be had now. `;
  text += `${framesText(free)} are free, ${framesText(Math.min(small, free))} of that in smaller blocks. `;
  if (now.forecasts) {
    const best = now.forecasts.ways.reduce((a, b) => (b.likely > a.likely * 1.05 ? b : a));
    if (best.way !== "now") text += `Most would come ${WAYS[best.way]}: likely ${countText(best.likely)}. `;
  }
  if (now.blocks && now.blocks.mixed > 0) text += `${countText(now.blocks.mixed)} page blocks are mixed.`;
  return text;
}

function fill(body, rows) {
  body.replaceChildren(...rows.map((cells) => {
    const row = document.createElement("tr");
    row.append(...cells.map((cell) => {
      const box = document.createElement("td");
      box.textContent = cell;
      return box;
    }));
    return row;
  }));
}

function setText(id, text) {
  if (byId(id).textContent !== text) byId(id).textContent = text;
}

function showNow() {
  byId("trouble").hidden = true;
  document.title = `${now.host || "host"} – Brickyard`;
  setText("host", now.host || "unnamed host");
  const age = now.frames ? `, frames ${ageText(now.time_ms - now.frames.time_ms)} old` : "";
  setText("about", `Linux ${now.kernel} · Brickyard ${now.version} · read at ${timeText(now.time_ms)}${age}`);
  setText("headline", headline());
  fill(byId("forecasts"), now.forecasts
    ? now.forecasts.ways.map((way) => [WAYS[way.way] || way.way, countText(way.likely), countText(way.at_least), countText(way.at_most)])
    : [[WAYS.now, countText(now.huge_free), "–", "–"]]);
  setText("forecast-note", now.forecasts
    ? `By the kernel's rules, run on a copy of the frames of ${timeText(now.forecasts.time_ms)}.`
    : "The other ways need the state of every frame, which root may read.");
  const uses = Object.entries(now.memory_use).filter(([, count]) => count > 0).sort((a, b) => b[1] - a[1]);
  const total = uses.reduce((sum, [, count]) => sum + count, 0);
  fill(byId("uses"), uses.map(([name, count]) => [name, framesText(count), `${(100 * count / total).toFixed(1)} %`]));
  const fallbacks = [...(now.fallbacks || [])].sort((a, b) => b.count - a.count).slice(0, 20);
  fill(byId("fallbacks"), fallbacks.map((row) => [row.process, row.mobility, row.from, countText(row.count)]));
  setText("fallbacks-note", !now.fallbacks ? "They are not traced; see below." : fallbacks.length === 0
    ? "None since the service began: every request found memory of its own mobility."
    : "Requests that got memory from page blocks of another mobility, since the service began.");
  const names = {
    allocation_stalls: "requests that waited for reclaim", compaction_stalls: "requests that waited for compaction",
    compaction_successes: "… and got their block", compaction_failures: "… in vain",
    thp_faults: "faults that got a huge page", thp_fault_fallbacks: "faults that got small pages instead",
  };
  fill(byId("counters"), Object.entries(names).map(([key, name]) => [name, countText(now.counters[key])]));
  showZones();
  const withheld = now.withheld.map(({ source, why }) => {
    const item = document.createElement("li");
    item.textContent = `${source}: ${why}`;
    return item;
  });
  if (withheld.length === 0) {
    const item = document.createElement("li");
    item.textContent = "Everything is read.";
    withheld.push(item);
  }
  byId("withheld").replaceChildren(...withheld);
  const pass = now.pass ? `; the next pass over all frames is ${Math.round(100 * now.pass.done)} % done` : "";
  setText("cost", `${(100 * now.cost.share).toFixed(2)} % of one CPU since it began (sampling keeps to ${(100 * now.cost.budget).toFixed(2)} % on average), ${bytesText(now.cost.resident_bytes)} of memory${pass}.`);
  if (!now.frames) setText("readout", now.pass
    ? `The first pass over all frames is ${Math.round(100 * now.pass.done)} % done.`
    : "What is in each page block is known to root only: run the service by root, who only opens the files.");
  schedule();
}

function showZones() {
  const orders = Math.max(...now.zones.map((zone) => zone.free_blocks.length));
  const heads = ["zone", "free", "per-CPU lists", "low mark", ...Array.from({ length: orders }, (_, order) => order)];
  const row = document.createElement("tr");
  row.append(...heads.map((head) => {
    const cell = document.createElement("th");
    cell.scope = "col";
    cell.textContent = head;
    return cell;
  }));
  byId("zones").tHead.replaceChildren(row);
  fill(byId("zones").tBodies[0], now.zones.map((zone) => [
    `${zone.node} ${zone.name}`, framesText(zone.free), framesText(zone.idle), framesText(zone.low),
    ...zone.free_blocks.map(countText),
  ]));
}

function showTrouble(error) {
  const old = answered ? `What is shown is ${ageText(Date.now() - answered)} old. ` : "";
  const why = error instanceof Refused ? error.message : "the service does not answer";
  setText("trouble", `${old}No news: ${why}.`);
  byId("trouble").hidden = false;
}

// ---- the map

let drawing = false;
function schedule() {
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => {
    drawing = false;
    drawMap();
    drawTime();
    keepHash();
  });
}

// Returns a canvas's context and size in its own pixels.
function canvasOf(id) {
  const canvas = byId(id);
  const scale = Math.min(devicePixelRatio || 1, 3);
  const width = Math.max(1, Math.round(canvas.clientWidth * scale));
  const height = Math.max(1, Math.round(canvas.clientHeight * scale));
  if (canvas.width !== width || canvas.height !== height) {
    canvas.width = width;
    canvas.height = height;
  }
  return { canvas, context: canvas.getContext("2d"), width, height, scale };
}

const allFrames = () => map.end * 2 ** map.block_order;

// The frames that are shown, within memory.
function shown() {
  const all = allFrames();
  if (!view) return { first: 0, count: all };
  const count = Math.min(all, Math.max(FRAMES_LEAST, view.count));
  return { first: Math.max(0, Math.min(all - count, view.first)), count };
}

// How the cells lie: `unit` frames a cell, `columns` cells a row of `side` pixels each.
function layout(width, height) {
  const { first, count } = shown();
  const byFrame = chosen === null && count <= FRAMES_MOST;
  let unit = byFrame ? 1 : 2 ** map.block_order;
  const cells = () => Math.ceil(count / unit);
  // Cells below 2 pixels cannot be told apart: then one is several blocks.
  while (!byFrame && cells() > width * height / 4) unit *= 2;
  let columns = 1;
  while (Math.ceil(cells() / columns) * (width / columns) > height) columns += columns < 64 ? 1 : 8;
  const start = Math.floor(first / unit) * unit;
  return { start, unit, columns, side: width / columns, cells: Math.ceil((first + count - start) / unit), byFrame };
}

// Returns the place of the first run that ends after this block.
function runAt(block) {
  let low = 0;
  let high = map.ends.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (map.ends[middle] > block) high = middle;
    else low = middle + 1;
  }
  return low;
}

// Returns the kind of the blocks from `block` on: the worst in them.
function kindOf(block, blocks) {
  let worst = WORST.length - 1;
  for (let at = runAt(block); at < map.runs.length && map.runs[at][0] < block + blocks; at += 1) {
    worst = Math.min(worst, WORST.indexOf(map.kinds[map.runs[at][2]]));
    if (worst === 0) break;
  }
  return WORST[worst];
}

function drawMap() {
  const { context, width, height } = canvasOf("map");
  context.clearRect(0, 0, width, height);
  if (!map || map.end === 0) {
    legend([]);
    return;
  }
  const plan = layout(width, height);
  if (plan.byFrame) loadFrames();
  const hasFrames = plan.byFrame && frames && frames.first <= plan.start && plan.start + plan.cells <= frames.first + frames.count;
  const gap = plan.side >= 6 ? 1 : 0;
  const present = new Set();
  // Cells of one colour side by side are one rectangle, where there is no gap between cells.
  let from = null;
  let last = null;
  const flush = (cell) => {
    if (last === null) return;
    const row = Math.floor(from / plan.columns);
    const column = from - row * plan.columns;
    const x = Math.round(column * plan.side);
    const y = Math.round(row * plan.side);
    const right = Math.round((column + cell - from) * plan.side);
    const bottom = Math.round((row + 1) * plan.side);
    context.fillStyle = last;
    context.fillRect(x, y, right - x - gap, bottom - y - gap);
  };
  const blockFrames = 2 ** map.block_order;
  for (let cell = 0; cell < plan.cells; cell += 1) {
    const frame = plan.start + cell * plan.unit;
    let entry;
    if (hasFrames) {
      const name = frames.uses[frames.text.charCodeAt(frame - frames.first) - 65] || "hole";
      present.add(name);
      entry = USES[name] || USES.hole;
    } else {
      const name = kindOf(Math.floor(frame / blockFrames), Math.max(1, plan.unit / blockFrames));
      present.add(name);
      entry = KINDS[name] || KINDS.absent;
    }
    const paint = colour(entry, 1);
    if (paint !== last || gap > 0 || cell % plan.columns === 0) {
      flush(cell);
      from = cell;
      last = paint;
    }
  }
  flush(plan.cells);
  drawZones(context, plan, width, height);
  const named = hasFrames ? USES : KINDS;
  legend(Object.entries(named).filter(([name]) => present.has(name)).map(([, entry]) => entry));
  const size = plan.unit * now.frame_bytes;
  const { first, count } = shown();
  setText("level", `${framesText(count)} from ${hex(first * now.frame_bytes)}; a cell is ${bytesText(size)}${plan.unit > blockFrames ? ", of which the worst block shows" : ""}`);
  setText("when", whenText(plan.byFrame && !hasFrames));
  byId("out").disabled = byId("whole").disabled = count >= allFrames();
  byId("in").disabled = count <= FRAMES_LEAST || (chosen !== null && count <= 64 * blockFrames);
}

function whenText(isLoading) {
  if (chosen === null) {
    const read = now.frames ? `frames of ${timeText(map.time_ms)}` : "";
    return isLoading ? `${read}, loading pages` : read;
  }
  return `history: page blocks of ${timeText(map.time_ms)}; single pages are known of now only`;
}

const hex = (number) => `0x${number.toString(16)}`;

// Draws a line where a zone begins.
function drawZones(context, plan, width, height) {
  context.fillStyle = dark.matches ? "#ffffff" : "#000000";
  context.font = `${Math.round(11 * Math.min(devicePixelRatio || 1, 3))}px system-ui, sans-serif`;
  for (const zone of now.zones) {
    const cell = (zone.start_frame - plan.start) / plan.unit;
    if (cell < 0 || cell >= plan.cells) continue;
    const row = Math.floor(cell / plan.columns);
    const x = Math.round((cell - row * plan.columns) * plan.side);
    const y = Math.round(row * plan.side);
    context.fillRect(x, y, 2, Math.max(6, Math.round(plan.side)));
    const side = Math.max(12, plan.side);
    if (y + side < height) context.fillText(zone.name, Math.min(x + 4, width - 60), y + side);
  }
}

function legend(entries) {
  const text = entries.map((entry) => entry[0]).join() + dark.matches;
  const list = byId("legend");
  if (list.dataset.of === text) return;
  list.dataset.of = text;
  list.replaceChildren(...entries.map((entry) => {
    const item = document.createElement("li");
    const swatch = document.createElement("span");
    swatch.className = "swatch";
    swatch.style.background = colour(entry, 1);
    item.append(swatch, entry[0]);
    return item;
  }));
}

let loading = false;
let wanted = null;

// Loads the frames that are shown and as many on both sides, one request at a time.
async function loadFrames() {
  const { first, count } = shown();
  if (frames && frames.first <= first && first + count <= frames.first + frames.count) return;
  wanted = { first: Math.max(0, first - FRAMES_MOST / 2), count: 2 * FRAMES_MOST };
  if (loading) return;
  loading = true;
  try {
    while (wanted) {
      const asked = wanted;
      wanted = null;
      const of = map;
      const answer = await ask(`api/frames?first=${asked.first}&count=${asked.count}`);
      if (of !== map) continue;
      // Beyond the end of memory there are fewer.
      const text = answer.frames.padEnd(asked.count, "A");
      frames = { first: asked.first, count: asked.count, text, uses: answer.uses };
    }
  } catch (error) {
    showTrouble(error);
  } finally {
    loading = false;
    schedule();
  }
}

// Returns the frame at a point of the canvas, in CSS pixels.
function frameAt(x, y) {
  const { width, height, scale } = canvasOf("map");
  const plan = layout(width, height);
  const column = Math.min(plan.columns - 1, Math.max(0, Math.floor(x * scale / plan.side)));
  const row = Math.max(0, Math.floor(y * scale / plan.side));
  return plan.start + (row * plan.columns + column) * plan.unit;
}

function describe(frame) {
  if (!map || frame >= allFrames()) return "";
  const block = Math.floor(frame / 2 ** map.block_order);
  const kind = KINDS[kindOf(block, 1)][0];
  const zone = now.zones.find((zone) => frame >= zone.start_frame && frame < zone.start_frame + zone.frames);
  let text = `frame ${countText(frame)}, address ${hex(frame * now.frame_bytes)}, ${zone ? `zone ${zone.name} of node ${zone.node}` : "no zone"}; its page block: ${kind}`;
  if (chosen === null && frames && frame >= frames.first && frame < frames.first + frames.count) {
    const use = frames.uses[frames.text.charCodeAt(frame - frames.first) - 65];
    text += `; this page: ${(USES[use] || [use])[0]}`;
  }
  return text;
}

// Zooms so that the frame stays where it is; `by` above 1 shows less.
function zoom(by, frame) {
  if (!map) return;
  const { first, count } = shown();
  const least = chosen === null ? FRAMES_LEAST : 64 * 2 ** map.block_order;
  const newCount = Math.min(allFrames(), Math.max(least, Math.round(count / by)));
  const at = frame === undefined ? first + count / 2 : frame;
  const share = (at - first) / count;
  const newFirst = Math.round(at - share * newCount);
  view = newCount >= allFrames() ? null : { first: Math.max(0, newFirst), count: newCount };
  schedule();
}

// Moves by so many frames.
function move(by) {
  if (!map || !view) return;
  const { first, count } = shown();
  view = { first: Math.max(0, Math.min(allFrames() - count, Math.round(first + by))), count };
  schedule();
}

function rowFrames() {
  const { width, height } = canvasOf("map");
  const plan = layout(width, height);
  return plan.columns * plan.unit;
}

function watchMap() {
  const canvas = byId("map");
  canvas.addEventListener("wheel", (event) => {
    if (!map) return;
    event.preventDefault();
    zoom(2 ** (-Math.sign(event.deltaY) / 2), frameAt(event.offsetX, event.offsetY));
  }, { passive: false });
  const pointers = new Map();
  let apart = 0;
  let grabbed = null;
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, event);
    grabbed = map && pointers.size === 1 ? { y: event.offsetY, view: shown() } : null;
  });
  canvas.addEventListener("pointermove", (event) => {
    if (map) setText("readout", describe(frameAt(event.offsetX, event.offsetY)));
    if (!pointers.has(event.pointerId)) return;
    pointers.set(event.pointerId, event);
    if (pointers.size === 2) {
      const [a, b] = [...pointers.values()];
      const distance = Math.hypot(a.offsetX - b.offsetX, a.offsetY - b.offsetY);
      if (apart > 0 && distance > 0) zoom(distance / apart, frameAt((a.offsetX + b.offsetX) / 2, (a.offsetY + b.offsetY) / 2));
      apart = distance;
    } else if (grabbed && view) {
      const { side } = layout(canvas.width, canvas.height);
      const rows = Math.round((grabbed.y - event.offsetY) * (canvas.width / canvas.clientWidth) / side);
      view = { first: Math.max(0, grabbed.view.first + rows * rowFrames()), count: grabbed.view.count };
      schedule();
    }
  });
  const released = (event) => {
    pointers.delete(event.pointerId);
    apart = 0;
    grabbed = null;
  };
  canvas.addEventListener("pointerup", released);
  canvas.addEventListener("pointercancel", released);
  canvas.addEventListener("dblclick", (event) => map && zoom(8, frameAt(event.offsetX, event.offsetY)));
  canvas.addEventListener("keydown", (event) => {
    if (!map || event.ctrlKey || event.altKey || event.metaKey) return;
    const { count } = shown();
    const moves = { ArrowUp: -rowFrames(), ArrowDown: rowFrames(), ArrowLeft: -count / 16, ArrowRight: count / 16, PageUp: -count, PageDown: count, Home: -allFrames(), End: allFrames() };
    if (event.key === "+" || event.key === "=") zoom(2);
    else if (event.key === "-") zoom(0.5);
    else if (event.key === "0") { view = null; schedule(); }
    else if (event.key in moves) move(moves[event.key]);
    else return;
    event.preventDefault();
    const { first } = shown();
    setText("readout", describe(first));
  });
  byId("in").addEventListener("click", () => zoom(2));
  byId("out").addEventListener("click", () => zoom(0.5));
  byId("whole").addEventListener("click", () => { view = null; schedule(); });
}

// ---- time

function drawTime() {
  const { context, width, height, scale } = canvasOf("time");
  context.clearRect(0, 0, width, height);
  if (!series || byId("past").hidden) return;
  const x = (time) => (time - series.from) / (series.to - series.from) * width;
  const timeAt = series.columns.indexOf("time_ms");
  const legends = [];
  context.lineWidth = 1.5 * scale;
  for (const [column, name, light, darkColour, text] of SERIES) {
    const at = series.columns.indexOf(column);
    const values = at < 0 ? [] : series.rows.filter((row) => row[at] !== null);
    if (values.length === 0) continue;
    const most = values.reduce((most, row) => Math.max(most, row[at]), 0);
    const top = column === "unusable_huge" ? 1 : most || 1;
    const paint = dark.matches ? darkColour : light;
    context.strokeStyle = paint;
    context.beginPath();
    let last = null;
    for (const row of values) {
      const y = height - 4 * scale - row[at] / top * (height - 24 * scale);
      // A gap in the samples is a gap in the line.
      const gap = last === null || row[timeAt] - last > Math.max(300000, (series.to - series.from) / 40);
      if (gap) context.moveTo(x(row[timeAt]) - scale, y);
      context.lineTo(x(row[timeAt]), y);
      last = row[timeAt];
    }
    context.stroke();
    const nearest = values.reduce((a, b) => (Math.abs(b[timeAt] - (chosen ?? series.to)) <= Math.abs(a[timeAt] - (chosen ?? series.to)) ? b : a));
    legends.push([`${name}: ${text(nearest[at])} (top of the plot ${text(top)})`, paint]);
  }
  context.fillStyle = getComputedStyle(document.body).color;
  context.font = `${Math.round(11 * scale)}px system-ui, sans-serif`;
  context.textBaseline = "top";
  context.fillText(timeText(series.from), 4 * scale, 2 * scale);
  const end = timeText(series.to);
  context.fillText(end, width - context.measureText(end).width - 4 * scale, 2 * scale);
  for (const time of series.maps) context.fillRect(x(time), height - 3 * scale, Math.max(1, scale), 3 * scale);
  if (chosen !== null) context.fillRect(x(chosen), 0, Math.max(1, scale), height);
  const list = byId("series");
  list.replaceChildren(...legends.map(([name, paint]) => {
    const item = document.createElement("li");
    const swatch = document.createElement("span");
    swatch.className = "swatch";
    swatch.style.background = paint;
    item.append(swatch, name);
    return item;
  }));
  const slider = byId("time");
  slider.setAttribute("aria-valuemin", Math.round(series.from));
  slider.setAttribute("aria-valuemax", Math.round(series.to));
  slider.setAttribute("aria-valuenow", Math.round(chosen ?? series.to));
  slider.setAttribute("aria-valuetext", chosen === null ? "live" : timeText(chosen));
  byId("live").setAttribute("aria-pressed", String(chosen === null));
  setText("chosen", chosen === null ? "Ticks below the plot are times of which the map is known." : timeText(chosen));
}

// Shows a time of the past, or null: live.
async function choose(time) {
  chosen = time;
  const least = map ? 64 * 2 ** map.block_order : 0;
  if (time !== null && view && view.count < least) view = { first: view.first - least / 2, count: least };
  schedule();
  try {
    await loadMap();
    byId("trouble").hidden = true;
  } catch (error) {
    if (time === chosen) showTrouble(error);
  }
}

function watchTime() {
  const canvas = byId("time");
  const timeAt = (event) => series.from + event.offsetX / canvas.clientWidth * (series.to - series.from);
  let down = false;
  let soon = null;
  const pick = (event) => {
    const time = Math.min(timeAt(event), now.time_ms);
    chosen = time;
    schedule();
    clearTimeout(soon);
    soon = setTimeout(() => choose(time), 120);
  };
  canvas.addEventListener("pointerdown", (event) => {
    if (!series) return;
    down = true;
    canvas.setPointerCapture(event.pointerId);
    pick(event);
  });
  canvas.addEventListener("pointermove", (event) => down && pick(event));
  canvas.addEventListener("pointerup", () => { down = false; });
  canvas.addEventListener("pointercancel", () => { down = false; });
  canvas.addEventListener("keydown", (event) => {
    if (!series) return;
    // From map to map, which are the steps that there are.
    const maps = series.maps;
    const at = chosen ?? now.time_ms;
    if (event.key === "ArrowLeft") choose(maps.filter((time) => time < at - 500).pop() ?? at);
    else if (event.key === "ArrowRight") choose(maps.find((time) => time > at + 500) ?? null);
    else if (event.key === "Home") choose(maps[0] ?? at);
    else if (event.key === "End") choose(null);
    else return;
    event.preventDefault();
  });
  byId("live").addEventListener("click", () => choose(null));
  byId("span").addEventListener("change", () => loadSeries().catch(showTrouble));
}

// ---- the view in the address, so that it can be passed on

let ownHash = "";
function keepHash() {
  const parts = [];
  if (view) parts.push(`first=${Math.round(view.first)}`, `count=${Math.round(view.count)}`);
  if (chosen !== null) parts.push(`time=${Math.round(chosen)}`);
  const hash = parts.length === 0 ? "" : `#${parts.join("&")}`;
  if (hash === ownHash) return;
  ownHash = hash;
  history.replaceState(null, "", hash === "" ? location.pathname : hash);
}

function readHash() {
  if (location.hash === ownHash) return;
  const parts = new URLSearchParams(location.hash.slice(1));
  const number = (name) => {
    const value = Number(parts.get(name) ?? NaN);
    return Number.isSafeInteger(value) && value >= 0 ? value : null;
  };
  const [first, count, time] = [number("first"), number("count"), number("time")];
  view = first !== null && count !== null ? { first, count } : null;
  ownHash = location.hash;
  chosen = time;
  if (now) choose(time);
}

watchMap();
watchTime();
addEventListener("resize", schedule);
addEventListener("hashchange", readHash);
dark.addEventListener("change", schedule);
document.addEventListener("visibilitychange", () => { if (!document.hidden) poll(); });
readHash();
poll().then(() => { if (chosen !== null) choose(chosen); });
