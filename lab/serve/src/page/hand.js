// Pointers, wheel and keys on the picture of memory.

const TURN = 1.0025;
const DRAGGED = 4;

// Returns where an event is, in pixels of the canvas.
function pointOf(event) {
  const box = byId("map").getBoundingClientRect();
  const scale = scaleOfScreen();
  return { x: (event.clientX - box.left) * scale, y: (event.clientY - box.top) * scale };
}

function point(event) {
  const { x, y } = pointOf(event);
  const { left, top, zoom, edge } = shown();
  cursor = null;
  pointed = x < edge ? null : picture.layout.frameAt(left + (x - edge) / zoom, top + y / zoom);
  schedule();
  restAt(pointed);
}

// Where the pointer rests the pages of the block are looked up, to tell what is in it.
let resting = null;
function restAt(frame) {
  clearTimeout(resting);
  if (frame === null || chosen !== null || !now.frames || picture.layout.size > PART) return;
  resting = setTimeout(() => {
    if (frame !== told() || hasPages(shown())) return;
    frames.want([Math.floor(frame / PART)], picture.map.time_ms);
  }, 200);
}

function watchMap() {
  const canvas = byId("map");
  canvas.addEventListener("wheel", (event) => {
    if (!picture) return;
    const pixels = event.deltaY * [1, 33, 400][event.deltaMode] * (event.ctrlKey ? 4 : 1);
    // Where there is nothing to zoom out of, the page scrolls.
    if (pixels > 0 && !view) return;
    event.preventDefault();
    zoomBy(TURN ** -Math.max(-400, Math.min(400, pixels)), pointOf(event));
    point(event);
  }, { passive: false });

  const pointers = new Map();
  let last = null;
  let apart = 0;
  canvas.addEventListener("pointerdown", (event) => {
    if (!picture) return;
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, pointOf(event));
    last = null;
    apart = 0;
    point(event);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!picture) return;
    if (!pointers.has(event.pointerId)) return point(event);
    const before = pointers.get(event.pointerId);
    const here = pointOf(event);
    if (pointers.size === 1) {
      if (last === null && Math.hypot(here.x - before.x, here.y - before.y) < DRAGGED) return;
      const { zoom } = shown();
      const from = last ?? before;
      moveBy((from.x - here.x) / zoom, (from.y - here.y) / zoom);
      last = here;
      return;
    }
    pointers.set(event.pointerId, here);
    const [a, b] = [...pointers.values()];
    const distance = Math.hypot(a.x - b.x, a.y - b.y);
    const centre = { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 };
    if (apart > 0 && distance > 0) {
      zoomBy(distance / apart, centre);
      if (last) moveBy((last.x - centre.x) / shown().zoom, (last.y - centre.y) / shown().zoom);
    }
    apart = distance;
    last = centre;
  });
  const released = (event) => {
    pointers.delete(event.pointerId);
    for (const [id] of pointers) pointers.set(id, last ?? pointers.get(id));
    last = null;
    apart = 0;
  };
  canvas.addEventListener("pointerup", released);
  canvas.addEventListener("pointercancel", released);
  canvas.addEventListener("pointerleave", (event) => {
    // A finger leaves when it is lifted: what it has touched stays told.
    if (event.pointerType !== "mouse") return;
    pointed = null;
    schedule();
  });
  canvas.addEventListener("dblclick", (event) => zoomBy(4, pointOf(event)));
  canvas.addEventListener("keydown", keyed);
  canvas.addEventListener("blur", () => {
    cursor = null;
    schedule();
  });
  byId("in").addEventListener("click", () => zoomBy(2));
  byId("out").addEventListener("click", () => zoomBy(0.5));
  byId("whole").addEventListener("click", showAll);
}

function keyed(event) {
  if (!picture || event.ctrlKey || event.altKey || event.metaKey) return;
  const { left, top, zoom, width, height, edge } = shown();
  const { layout } = picture;
  // A step is a page where pages are shown, else a block; with Shift it is a block, or a tenth.
  const isByPage = hasPages(shown());
  const [wide, high] = [width / zoom / 10, height / zoom / 10];
  const stepX = isByPage && !event.shiftKey ? 1 : isByPage || !event.shiftKey ? layout.boxWidth : wide;
  const stepY = isByPage && !event.shiftKey ? 1 : isByPage || !event.shiftKey ? layout.boxHeight : high;
  const moves = {
    ArrowLeft: [-stepX, 0], ArrowRight: [stepX, 0], ArrowUp: [0, -stepY], ArrowDown: [0, stepY],
    PageUp: [0, -10 * high], PageDown: [0, 10 * high],
    Home: [-layout.width, -layout.height], End: [layout.width, layout.height],
  };
  const by = { "+": 2, "=": 2, "-": 0.5 }[event.key];
  const isSearch = event.key === "n" || event.key === "p";
  if (!by && !isSearch && event.key !== "0" && !(event.key in moves)) return;
  event.preventDefault();
  if (cursor === null) {
    const from = pointed === null ? { x: left + Math.min(layout.width, width / zoom) / 2, y: top + Math.min(layout.height, height / zoom) / 2 } : layout.placeOf(pointed);
    cursor = from;
    moveCursor(0, 0);
  }
  if (by) zoomBy(by, { x: edge + (cursor.x - left) * zoom, y: (cursor.y - top) * zoom });
  else if (event.key === "0") showAll();
  else if (isSearch) search(event.key === "n");
  else moveCursor(...moves[event.key]);
  restAt(told());
}

// Moves the cursor to the next or the previous blocks of the kind that is highlighted, else to mixed
// ones.
function search(isForward) {
  const { map, layout } = picture;
  const kind = map.kinds.indexOf(highlighted in KINDS ? highlighted : "mixed");
  const block = Math.floor((told() ?? 0) / layout.size);
  const found = isForward ? map.runs.find((run) => run[2] === kind && run[0] > block) : map.runs.findLast((run) => run[2] === kind && run[0] < block);
  if (!found) return;
  const place = layout.placeOf(found[0] * layout.size);
  moveCursor(place.x - cursor.x, place.y - cursor.y);
}
