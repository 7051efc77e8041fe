// The player: one clock for all films, its controls, and pointing, panning and zooming in the pictures.

const byId = (id) => document.getElementById(id);
// In a frame, options come in the frame's name, and the height of this page is posted to the outer page.
const framed = parent !== window;
const options = new URLSearchParams(framed ? window.name : location.hash.slice(1));
if (framed) {
  document.documentElement.classList.add("framed");
  new ResizeObserver(() => parent.postMessage({ height: document.documentElement.offsetHeight }, "*")).observe(document.body);
}
if (options.has("theme")) document.documentElement.dataset.theme = options.get("theme");

const films = about.films.map((film, number) => new Film(film, number));
// All times at which some film has a shot.
const times = [...new Set(films.flatMap((film) => film.shots.map((shot) => shot.seconds)))].sort((a, b) => a - b);
const lastTime = times[times.length - 1];
const timePart = (seconds) => (lastTime > 0 ? Math.min(1, seconds / lastTime) : 0);

const pictures = films.map((film) => new Picture(film));
const charts = times.length > 1 ? chartable(films).map((chart) => new Chart(chart, films)) : [];
const clock = { wanted: times.length - 1, shown: -1, running: null, playing: false, seconds: lastTime, rate: 1 };
// The page pointed at: its frame, the name of its zone, and whether it stays marked when the pointer leaves.
let probe = null;

// Shows the time at index clock.wanted, and repeats while that changes.
function showWanted() {
  // The function below awaits before it ends, so clock.running is set before it is cleared.
  if (!clock.running && clock.shown === clock.wanted) return Promise.resolve();
  clock.running ??= (async () => {
    try {
      while (clock.shown !== clock.wanted) {
        const wanted = clock.wanted;
        const seconds = times[wanted];
        const shots = films.map((film) => film.shotAt(seconds));
        const rows = await Promise.all(films.map((film, i) => film.row(shots[i])));
        pictures.forEach((picture, i) => picture.show(shots[i], rows[i], seconds));
        charts.forEach((chart) => chart.show(seconds));
        clock.shown = wanted;
      }
    } finally {
      clock.running = null;
    }
  })();
  return clock.running;
}

function want(index) {
  clock.wanted = Math.max(0, Math.min(times.length - 1, index));
  const scrub = byId("scrub");
  const text = `${duration(times[clock.wanted])} of ${duration(lastTime)}`;
  scrub.value = clock.wanted;
  scrub.setAttribute("aria-valuetext", `${text}, time ${clock.wanted + 1} of ${times.length}`);
  byId("clock").textContent = times.length > 1 ? `${text} (${clock.wanted + 1}/${times.length})` : "one shot";
  return showWanted();
}

function indexAt(seconds) {
  const next = times.findIndex((time) => time > seconds + 1e-6);
  return next < 0 ? times.length - 1 : Math.max(0, next - 1);
}

function go(index) {
  pause();
  return want(index);
}

function play() {
  if (clock.playing || times.length < 2) return;
  clock.playing = true;
  if (clock.wanted === times.length - 1) want(0);
  clock.seconds = times[clock.wanted];
  let before = performance.now();
  const tick = () => {
    if (!clock.playing) return;
    const now = performance.now();
    // No frames are drawn while the page is in the background; it then continues where it was.
    clock.seconds += Math.min(0.25, (now - before) / 1000) * clock.rate;
    before = now;
    const index = indexAt(clock.seconds);
    if (index !== clock.wanted) want(index);
    if (index === times.length - 1) return pause();
    requestAnimationFrame(tick);
  };
  requestAnimationFrame(tick);
  updatePlayButton();
}

function pause() {
  clock.playing = false;
  updatePlayButton();
}

function updatePlayButton() {
  byId("play").setAttribute("aria-pressed", clock.playing);
  byId("play").setAttribute("aria-label", clock.playing ? "Pause" : "Play");
}

const toggle = () => (clock.playing ? pause() : play());

// Changes the zoom around a position in the window (by default the canvas' middle), whose cell stays in place.
function zoom(factor, picture = pictures[0], clientX = null, clientY = null) {
  const old = view.zoom;
  const zoomed = Math.max(1, Math.min(ZOOM_MAX, old * factor));
  const bounds = picture.canvas.getBoundingClientRect();
  const [x, y] = clientX === null
    ? [picture.canvas.width / 2, picture.canvas.height / 2]
    : [(clientX - bounds.left) * picture.ratio, (clientY - bounds.top) * picture.ratio];
  const { left, top, size } = picture.placing;
  const { width, height } = picture.geometry;
  const [partX, partY] = [(x - left) / (width * size), (y - top) / (height * size)];
  const all = picture.fit * zoomed;
  view.zoom = zoomed;
  view.x = partX + (picture.canvas.width / 2 - x) / (width * all);
  view.y = partY + (picture.canvas.height / 2 - y) / (height * all);
  moved(picture);
  return zoomed !== old;
}

// Keeps the view within the picture, and draws all of them.
function moved(picture = pictures[0]) {
  const keep = (part, room, length) => {
    const half = room / 2 / (length * picture.fit * view.zoom);
    return half >= 0.5 ? 0.5 : Math.min(1 - half, Math.max(half, part));
  };
  view.x = keep(view.x, picture.canvas.width, picture.geometry.width);
  view.y = keep(view.y, picture.canvas.height, picture.geometry.height);
  byId("whole").textContent = `${view.zoom < 10 ? +view.zoom.toFixed(1) : Math.round(view.zoom)}x`;
  redraw();
}

let drawing = false;
function redraw() {
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => {
    drawing = false;
    pictures.forEach((picture) => picture.draw());
  });
}

let announceTimer = 0;
function point(next, picture) {
  if (probe?.frame === next?.frame && probe?.zone === next?.zone && probe?.pinned === next?.pinned) return;
  probe = next;
  pictures.forEach((picture) => picture.updateProbeText());
  redraw();
  clearTimeout(announceTimer);
  if (!next) return;
  announceTimer = setTimeout(() => {
    const described = picture.describeProbe();
    if (described) byId("live").textContent = `${picture.film.name}: ${described.kind}, ${described.where}. In this box: ${described.inBox}.`;
  }, 350);
}

const probeOf = (place, pinned) => place && { frame: place.frame, zone: place.zone.name, pinned };

// Moves the probe from page to page, and the picture with it.
function stepProbe(picture, right, down) {
  const { geometry } = picture;
  const here = picture.probed();
  let place = here ? null : geometry.place(0, 0);
  for (let jump = 1; jump <= 2 && !place; jump += 1) place = geometry.at(here.x + right * jump, here.y + down * jump);
  if (!place) return;
  point(probeOf(place, true), picture);
  const { size, left, top } = picture.placing;
  const [x, y] = [left + place.x * size, top + place.y * size];
  if (x < 0 || y < 0 || x > picture.canvas.width - size || y > picture.canvas.height - size) {
    [view.x, view.y] = [place.x / geometry.width, place.y / geometry.height];
    moved(picture);
  }
}

function listenToPicture(picture) {
  const { canvas } = picture;
  const fingers = new Map();
  let travelled = 0;
  canvas.addEventListener("wheel", (event) => {
    if (event.deltaY > 0 && view.zoom <= 1) return;
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 33 : 1;
    zoom(Math.exp(-event.deltaY * lines * (event.ctrlKey ? 0.01 : 0.0022)), picture, event.clientX, event.clientY);
  }, { passive: false });
  canvas.addEventListener("pointerdown", (event) => {
    fingers.set(event.pointerId, event);
    travelled = 0;
    if (event.isTrusted) canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    const before = fingers.get(event.pointerId);
    if (!before) {
      if (event.pointerType === "mouse" && !probe?.pinned) point(probeOf(picture.pointed(event.clientX, event.clientY), false), picture);
      return;
    }
    travelled += Math.hypot(event.clientX - before.clientX, event.clientY - before.clientY);
    const others = [...fingers.values()].filter((finger) => finger.pointerId !== event.pointerId);
    if (others.length === 1) {
      const apart = (finger) => Math.hypot(finger.clientX - others[0].clientX, finger.clientY - others[0].clientY) || 1;
      zoom(apart(event) / apart(before), picture, (event.clientX + others[0].clientX) / 2, (event.clientY + others[0].clientY) / 2);
    } else if (view.zoom > 1 && travelled > 3) {
      const { size } = picture.placing;
      view.x -= (event.clientX - before.clientX) * picture.ratio / (picture.geometry.width * size);
      view.y -= (event.clientY - before.clientY) * picture.ratio / (picture.geometry.height * size);
      moved(picture);
    }
    fingers.set(event.pointerId, event);
  });
  const lift = (event) => {
    const tapped = fingers.delete(event.pointerId) && travelled < 6 && event.type === "pointerup";
    if (!tapped) return;
    const place = picture.pointed(event.clientX, event.clientY);
    const same = probe?.pinned && place && place.frame === probe.frame;
    point(same ? null : probeOf(place, true), picture);
  };
  canvas.addEventListener("pointerup", lift);
  canvas.addEventListener("pointercancel", lift);
  canvas.addEventListener("pointerleave", () => { if (!probe?.pinned) point(null, picture); });
  canvas.addEventListener("dblclick", (event) => zoom(4, picture, event.clientX, event.clientY));
  canvas.addEventListener("keydown", (event) => {
    const ways = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    if (event.key === "Escape") point(null, picture);
    if (!event.shiftKey || !ways[event.key]) return;
    event.preventDefault();
    event.stopPropagation();
    stepProbe(picture, ...ways[event.key]);
  });
  listenToTime(picture.stripFrame, (clientX) => {
    const bounds = picture.stripFrame.getBoundingClientRect();
    return (clientX - bounds.left) / bounds.width * lastTime;
  });
}

// Makes pressing or dragging on the target seek to the time there.
function listenToTime(target, timeAt) {
  const seek = (event) => go(indexAt(Math.max(0, timeAt(event.clientX))));
  target.addEventListener("pointerdown", (event) => {
    if (event.isTrusted) target.setPointerCapture(event.pointerId);
    seek(event);
  });
  target.addEventListener("pointermove", (event) => { if (event.buttons & 1) seek(event); });
}

function listenToKeys() {
  const keys = {
    ArrowLeft: () => go(clock.wanted - 1), ArrowRight: () => go(clock.wanted + 1),
    Home: () => go(0), End: () => go(times.length - 1), " ": toggle, k: toggle,
    "+": () => zoom(1.5), "=": () => zoom(1.5), "-": () => zoom(1 / 1.5), 0: showAll,
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
    const own = event.target.closest?.("button, select");
    if (own && (event.key === " " || own.tagName === "SELECT")) return;
    event.preventDefault();
    keys[event.key]();
  });
}

function showAll() {
  Object.assign(view, { zoom: 1, x: 0.5, y: 0.5 });
  moved();
}

function highlight(kind) {
  highlighted = highlighted === kind ? null : kind;
  document.querySelectorAll("#legend button").forEach((button) => button.setAttribute("aria-pressed", Number(button.dataset.kind) === highlighted));
  pictures.forEach((picture) => picture.paint());
}

function buildLegend() {
  for (const kind of SHOWN) {
    const button = element("button", { type: "button", "aria-pressed": "false", "data-kind": kind }, swatch(kind), KINDS[kind].name);
    button.addEventListener("click", () => highlight(kind));
    byId("legend").append(element("li", {}, button));
  }
  byId("legend").append(element("li", { class: "mark", style: `--free: ${colorOf(FREE)}` }, element("span", { class: "corner", "aria-hidden": "true" }), "zone starts"));
}

// At a speed of 1x about five shots are shown per second.
function buildSpeeds() {
  const steps = times.slice(1).map((time, i) => time - times[i]).sort((a, b) => a - b);
  const base = (steps[steps.length >> 1] || 1) * 5;
  for (const speed of [0.25, 0.5, 1, 2, 4, 8]) {
    const label = `${speed}x (${round(base * speed)} s/s)`;
    byId("speed").append(element("option", { value: base * speed, ...(speed === 1 ? { selected: "" } : {}) }, label));
  }
  clock.rate = base;
  byId("speed").addEventListener("change", (event) => { clock.rate = Number(event.target.value); });
}

// Writes the page's summary, and the explanation of pixels, boxes and zones.
function describePage() {
  const film = films[0];
  const pages = 2 ** film.scale;
  const memory = (film) => bytes(film.zones.reduce((sum, zone) => sum + zone.frames, 0) * film.frame_bytes);
  byId("lede").textContent = [memory(film), plural(films.length, "configuration"), plural(times.length, "point in time", "points in time"), duration(lastTime)].join(" \u00b7 ");
  const pixel = pages === 1
    ? `Each pixel is a page of ${bytes(film.frame_bytes)}`
    : `Each pixel is ${whole(pages)} pages, ${bytes(pages * film.frame_bytes)}, in the colour of the most frequent kind in use, light where more are free than used`;
  const blocks = 2 ** (film.box_order - film.block_order);
  const box = blocks === 1 ? `a block of order ${film.block_order}` : `${blocks} blocks of order ${film.block_order}`;
  const zonesOf = (film) => film.zones.slice(0, 16).map((zone) => `${zone.name} from frame ${whole(zone.start)}, ${bytes(zone.frames * film.frame_bytes)}`)
    .concat(film.zones.length > 16 ? `and ${film.zones.length - 16} more` : []).join("; ");
  const alike = films.every((film) => zonesOf(film) === zonesOf(films[0]));
  const zones = alike ? zonesOf(film) : films.map((film) => `${film.name}: ${zonesOf(film)}`).join(". ");
  byId("reading").textContent = `${pixel}; each box is ${box}, ${bytes(2 ** film.box_order * film.frame_bytes)}; ` +
    `a huge page is order ${film.huge_order}, ${bytes(2 ** film.huge_order * film.frame_bytes)}. ` +
    `A line to the left of and above a box marks the start of a zone. ${zones}.`;
}

function recolor() {
  document.querySelectorAll(".swatch").forEach((swatch) => swatch.style.setProperty("--kind", colorOf(Number(swatch.dataset.kind))));
  document.querySelectorAll(".corner").forEach((corner) => corner.parentElement.style.setProperty("--free", colorOf(FREE)));
  pictures.forEach((picture) => { picture.paint(); picture.drawStrip(); picture.updateProbeText(); });
}

function layOut() {
  pictures.forEach((picture) => picture.resize());
  charts.forEach((chart) => chart.resize());
  moved();
  charts.forEach((chart) => chart.show(times[Math.max(0, clock.shown)]));
}

function listenToControls() {
  const on = (id, action) => byId(id).addEventListener("click", action);
  on("first", () => go(0));
  on("back", () => go(clock.wanted - 1));
  on("play", toggle);
  on("forward", () => go(clock.wanted + 1));
  on("last", () => go(times.length - 1));
  on("smaller", () => zoom(1 / 1.5));
  on("larger", () => zoom(1.5));
  on("whole", showAll);
  byId("scrub").max = times.length - 1;
  byId("scrub").addEventListener("input", (event) => go(Number(event.target.value)));
  charts.forEach((chart) => listenToTime(chart.plot, (clientX) => chart.timeAt(clientX)));
  theme.addEventListener("change", recolor);
  let width = innerWidth;
  addEventListener("resize", () => {
    // A phone's address bar comes and goes, so there only a change in width lays out anew.
    if (innerWidth !== width || matchMedia("(pointer: fine)").matches) layOut();
    width = innerWidth;
  });
}

async function begin() {
  buildLegend();
  buildSpeeds();
  describePage();
  byId("pictures").append(...pictures.map((picture) => picture.card));
  byId("charts").append(...charts.map((chart) => chart.figure));
  if (times.length < 2) document.querySelectorAll(".player button:not(.zoom button), #scrub, #speed").forEach((control) => { control.disabled = true; });
  pictures.forEach(listenToPicture);
  listenToControls();
  listenToKeys();
  layOut();
  if (options.has("frame")) point({ frame: Number(options.get("frame")), zone: "", pinned: true }, pictures[0]);
  if (options.has("zoom")) {
    const place = pictures[0].probed();
    if (place) [view.x, view.y] = [place.x / pictures[0].geometry.width, place.y / pictures[0].geometry.height];
    view.zoom = Math.max(1, Math.min(ZOOM_MAX, Number(options.get("zoom")) || 1));
    moved();
  }
  await want(options.has("shot") ? Number(options.get("shot")) || 0 : times.length - 1);
}

const begun = begin();
begun.catch((error) => {
  byId("lede").textContent = `This page could not be shown: ${error.message}. It needs a browser of 2024 or newer.`;
  throw error;
});
