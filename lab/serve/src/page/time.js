// The figures of the history over time, and the choice of a time in it.

let series = null; // {columns, rows, maps, from, to, asked}, or null.
let chosen = null; // A time in the past, or null: live.

const GAP_MS = 300000;
const RATE_MS = 30000;
const PANEL_HIGH = 46;
const NAME_HIGH = 13; // Where the names are not beside the plot.
const AXIS_HIGH = 18;

// What is plotted, a panel each, and the lines in it: column, name, colour in light and in dark.
// The counters since boot are plotted as how often in a minute.
const PANELS = [
  { name: "memory", text: bytesText, lines: [["available_bytes", "available", "#7b8696", "#8a96a8"], ["free_bytes", "free", "#1d5fc0", "#7aaef5"]] },
  { name: "huge pages", text: countText, lines: [["huge_dropped_likely", "likely after all help", "#9a6400", "#f5bd3d"], ["huge_free", "to be had now", "#12805c", "#4cc38a"]] },
  { name: "free memory", text: shareText, most: 1, lines: [["unusable_huge", "unusable for huge pages", "#c1121f", "#ff7b84"]] },
  { name: "page blocks", text: countText, lines: [["blocks_mixed", "mixed", "#8e44ad", "#dca6ee"]] },
  { name: "per minute", text: rateText, isRate: true, lines: [["compaction_stalls", "compaction stalls", "#1a1f27", "#e3e7ec"], ["thp_fault_fallbacks", "huge-page faults in vain", "#c1121f", "#ff7b84"]] },
];
const OTHER_NAMES = { huge_dropped_likely: "huge_dropped", blocks_mixed: "mixed_blocks" };

async function loadSeries() {
  if (!now.history) {
    series = null;
    byId("past").hidden = true;
    return;
  }
  const to = now.time_ms;
  // A time that a link leads to is in the span.
  const spans = [...byId("span").options].map((option) => Number(option.value));
  if (chosen !== null && to - Number(byId("span").value) > chosen) byId("span").value = spans.find((span) => to - span < chosen) ?? spans[spans.length - 1];
  const span = Number(byId("span").value);
  const points = Math.max(50, Math.min(1000, Math.round(byId("past").clientWidth || 600)));
  const asked = Date.now();
  try {
    const answer = await ask(`api/series?from=${Math.max(0, to - span)}&to=${to + 60000}&points=${points}`);
    // Of a span that the history does not fill only what there is.
    const oldest = answer.rows.length > 0 ? answer.rows[0][answer.columns.indexOf("time_ms")] : to - span;
    series = { ...answer, from: Math.max(to - span, Math.min(oldest, to - 600000)), to, asked };
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    series = { columns: [], rows: [], maps: [], from: to - span, to, asked };
  }
  addNow();
  series.panels = PANELS.map(panelOf).filter((panel) => panel.lines.length > 0);
  byId("past").hidden = false;
  schedule();
}

const hasNamesBeside = () => byId("past").clientWidth >= 880;

// Sizes the canvas; returns how high the names in it are.
function arrangeTime() {
  const name = hasNamesBeside() ? 0 : NAME_HIGH;
  byId("time").style.height = `${Math.max(1, series.panels.length) * (PANEL_HIGH + name) + AXIS_HIGH}px`;
  return name;
}

const columnAt = (column) => Math.max(series.columns.indexOf(column), series.columns.indexOf(OTHER_NAMES[column]));

// Returns a panel with the points of those of its lines that have any.
function panelOf(panel) {
  const timeAt = series.columns.indexOf("time_ms");
  const lines = panel.lines.flatMap(([column, name, ...colours]) => {
    const at = columnAt(column);
    if (at < 0) return [];
    let points = series.rows.map((row) => ({ time: row[timeAt], value: row[at] }));
    if (panel.isRate) points = rates(points);
    points = points.filter((point) => isKnown(point.value));
    return points.length === 0 ? [] : [{ name, colours, points }];
  });
  const most = lines.reduce((most, line) => line.points.reduce((most, point) => Math.max(most, point.value), most), 0);
  return { ...panel, lines, most: panel.most ?? (most || 1) };
}

// Counters begin again when a host boots, and are compared over half a minute or more.
function rates(points) {
  const known = points.filter((point) => isKnown(point.value));
  let from = 0;
  return known.map(({ time, value }, at) => {
    while (from + 1 < at && known[from + 1].time <= time - RATE_MS) from += 1;
    const before = known[from];
    const passed = time - before.time;
    const isOne = value >= before.value && passed >= RATE_MS && passed <= gapOf();
    return { time, value: isOne ? (value - before.value) / passed * 60000 : null };
  });
}

// Between samples that are further apart nothing is known.
const gapOf = () => Math.max(GAP_MS, (series.to - series.from) / 40);

// Adds what the host says now to what its history says.
function addNow() {
  if (!series) return;
  const free = sumOf(now.zones, (zone) => zone.free);
  const known = {
    time_ms: now.time_ms,
    free_bytes: free * now.frame_bytes,
    available_bytes: now.available_bytes,
    huge_free: hugeFree(),
    huge_dropped_likely: now.forecasts?.ways.find((way) => way.way === "dropped")?.likely,
    unusable_huge: free > 0 ? sumOf(now.zones, smallFree) / free : 0,
    blocks_mixed: now.blocks?.mixed,
    compaction_stalls: now.counters?.compaction_stalls,
    thp_fault_fallbacks: now.counters?.thp_fault_fallbacks,
  };
  const timeAt = series.columns.indexOf("time_ms");
  const last = series.rows[series.rows.length - 1];
  series.to = Math.max(series.to, now.time_ms);
  if (timeAt < 0 || (last && last[timeAt] >= now.time_ms)) return;
  const names = new Map(Object.entries(OTHER_NAMES).map(([name, other]) => [other, name]));
  series.rows.push(series.columns.map((column) => known[names.get(column) ?? column] ?? null));
  series.panels = PANELS.map(panelOf).filter((panel) => panel.lines.length > 0);
}

// Returns the edges of the plot, in pixels of the canvas.
function plotOf(width, scale) {
  const edge = Math.round(gutter() * scale);
  return { left: edge, wide: Math.max(1, width - edge - 8 * scale) };
}

function drawTime() {
  if (!series || byId("past").hidden) return;
  const name = arrangeTime();
  const { context, width, height, scale } = canvasOf("time");
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.clearRect(0, 0, width, height);
  const { left, wide } = plotOf(width, scale);
  const x = (time) => left + (time - series.from) / (series.to - series.from) * wide;
  const high = (height - AXIS_HIGH * scale) / Math.max(1, series.panels.length);
  drawTicks(context, { x, left, wide, height, scale });
  series.panels.forEach((panel, at) => drawPanel(context, panel, { x, left, wide, top: at * high + name * scale, high: high - name * scale, scale }));
  const floor = height - AXIS_HIGH * scale;
  context.fillStyle = faintColour();
  for (const time of series.maps) {
    if (time >= series.from) context.fillRect(Math.round(x(time)), floor, Math.max(1, Math.round(scale)), 4 * scale);
  }
  context.fillStyle = chosen === null ? faintColour() : accentColour();
  const cursorAt = Math.round(Math.max(left, Math.min(left + wide, x(chosen ?? series.to))));
  context.fillRect(cursorAt - Math.round(scale), 0, Math.max(2, Math.round(2 * scale)), floor);
  tellTime();
}

const STEPS_MIN = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 7200, 10080];

function drawTicks(context, { x, left, wide, height, scale }) {
  context.font = `${10 * scale}px system-ui, sans-serif`;
  context.textBaseline = "middle";
  context.textAlign = "right";
  context.fillStyle = faintColour();
  const y = height - 7 * scale;
  context.fillText(zoneOfTimeText(), left - 6 * scale, y);
  const fits = wide / scale / 76;
  const step = 60000 * (STEPS_MIN.find((minutes) => (series.to - series.from) / minutes / 60000 <= fits) ?? 14400);
  const east = -new Date(series.to).getTimezoneOffset() * 60000;
  context.textAlign = "center";
  for (let time = Math.ceil((series.from + east) / step) * step - east; time <= series.to; time += step) {
    const at = new Date(time);
    const text = step >= 86400000 || at.getHours() + at.getMinutes() === 0 ? dayText(at).slice(5) : `${two(at.getHours())}:${two(at.getMinutes())}`;
    const from = Math.round(x(time));
    context.globalAlpha = 0.25;
    context.fillRect(from, 0, Math.max(1, Math.round(scale)), height - AXIS_HIGH * scale);
    context.globalAlpha = 1;
    if (from > left + 14 * scale && from < left + wide - 12 * scale) context.fillText(text, from, y);
  }
  context.textAlign = "left";
}

function drawPanel(context, panel, { x, left, wide, top, high, scale }) {
  const base = Math.round(top + high - 3 * scale);
  const room = high - 9 * scale;
  const thick = Math.max(1, Math.round(scale));
  context.fillStyle = faintColour();
  context.globalAlpha = 0.5;
  context.fillRect(left, base, wide, thick);
  context.globalAlpha = 1;
  context.save();
  context.beginPath();
  context.rect(left, top, wide, high);
  context.clip();
  for (const { points, colours } of panel.lines) {
    context.strokeStyle = colours[dark.matches ? 1 : 0];
    context.lineWidth = 1.5 * scale;
    context.lineJoin = "round";
    context.beginPath();
    let last = null;
    for (const { time, value } of points) {
      const y = base - value / panel.most * room;
      // A gap in the samples is a gap in the line.
      if (last === null || time - last > gapOf()) context.moveTo(x(time) - 1.5 * scale, y);
      context.lineTo(x(time), y);
      last = time;
    }
    context.stroke();
  }
  context.restore();
  context.font = `${10 * scale}px system-ui, sans-serif`;
  context.textBaseline = "middle";
  if (!hasNamesBeside()) {
    context.fillStyle = faintColour();
    context.fillText(panel.name, left + 4 * scale, top - 4 * scale);
  }
  context.textAlign = "right";
  context.fillStyle = faintColour();
  context.fillText(panel.text(panel.most), left - 6 * scale, top + 8 * scale, left - 8 * scale);
  context.fillText("0", left - 6 * scale, base - 3 * scale);
  context.textAlign = "left";
}

// Returns the last point that is not after the time, or null if it is long before.
function pointAt(points, time) {
  const found = points.findLast((point) => point.time <= time + 500) ?? null;
  return found && time - found.time <= gapOf() ? found : null;
}

// Returns a figure of the history, or null if there is none of about that time.
function figureAt(column, time) {
  const at = series ? columnAt(column) : -1;
  const timeAt = series?.columns.indexOf("time_ms");
  const points = at < 0 ? [] : series.rows.filter((row) => isKnown(row[at])).map((row) => ({ time: row[timeAt], value: row[at] }));
  return pointAt(points, time)?.value ?? null;
}

// Says the figures of the time that is shown, in the colours of the lines.
function tellTime() {
  const time = chosen ?? series.to;
  const lines = series.panels.flatMap((panel) => panel.lines.map((line) => [panel, line]));
  const list = byId("series");
  const shape = JSON.stringify([lines.map(([panel, line]) => [panel.name, line.name]), dark.matches]);
  if (list.dataset.state !== shape) {
    list.dataset.state = shape;
    list.replaceChildren(...series.panels.map((panel) => {
      const item = element("li");
      item.append(element("b", panel.name), ...panel.lines.flatMap((line) => {
        const swatch = element("span", "", "line");
        swatch.style.background = line.colours[dark.matches ? 1 : 0];
        const figure = element("span", "", "figure");
        figure.dataset.line = line.name;
        const whole = element("span");
        whole.append(swatch, `${line.name} `, figure);
        return [" ", whole];
      }));
      return item;
    }));
  }
  lines.forEach(([panel, line], at) => {
    const figure = list.querySelectorAll(".figure")[at];
    const text = panel.text(pointAt(line.points, time)?.value);
    if (figure.textContent !== text) figure.textContent = text;
  });
  const slider = byId("time");
  slider.setAttribute("aria-valuemin", Math.round(series.from));
  slider.setAttribute("aria-valuemax", Math.round(series.to));
  slider.setAttribute("aria-valuenow", Math.round(time));
  slider.setAttribute("aria-valuetext", chosen === null ? "live" : timeText(chosen));
  byId("live").setAttribute("aria-pressed", String(chosen === null));
  setText("chosen", chosen === null ? "" : `history: ${timeText(chosen)}, ${ageText(now.time_ms - chosen)} ago`);
  byId("past").classList.toggle("past", chosen !== null);
  const step = series.maps.length > 0 ? "map to map; ticks are the times of maps" : "sample to sample";
  setText("hint", `Drag, or ← and → from ${step}.`);
  const faults = series.faults ?? [];
  setText("faults", faults.length === 0 ? "" : `Not read of the history: ${faults.slice(0, 3).join("; ")}${faults.length > 3 ? `; and ${faults.length - 3} more` : ""}.`);
}

// Shows a time of the past, or null: live.
async function choose(time) {
  chosen = time;
  schedule();
  try {
    await loadMap();
    if (time !== null && series && time < series.from) await loadSeries();
  } catch (error) {
    if (time === chosen) showTrouble(error);
  }
  schedule();
}

function watchTime() {
  const canvas = byId("time");
  let down = null;
  let soon = null;
  const pick = (event) => {
    const { left, wide } = plotOf(canvas.clientWidth, 1);
    const box = canvas.getBoundingClientRect();
    const time = series.from + (event.clientX - box.left - left) / wide * (series.to - series.from);
    // The right end is live.
    const isNow = event.clientX - box.left > left + wide - 3;
    chosen = isNow ? null : Math.round(Math.max(series.from, Math.min(series.to, time)));
    schedule();
    clearTimeout(soon);
    soon = setTimeout(() => choose(chosen), 120);
  };
  // A finger that scrolls the page chooses nothing: the browser then cancels its pointer.
  canvas.addEventListener("pointerdown", (event) => {
    if (!series) return;
    down = event.clientX;
    canvas.setPointerCapture(event.pointerId);
    if (event.pointerType === "mouse") pick(event);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (down === null || (event.pointerType !== "mouse" && Math.abs(event.clientX - down) < DRAGGED)) return;
    down = -Infinity;
    pick(event);
  });
  canvas.addEventListener("pointerup", (event) => {
    if (down !== null && down !== -Infinity) pick(event);
    down = null;
  });
  canvas.addEventListener("pointercancel", () => { down = null; });
  canvas.addEventListener("keydown", (event) => {
    if (!series || event.ctrlKey || event.altKey || event.metaKey) return;
    // From map to map, or sample to sample where there are no maps: the steps that there are.
    const timeAt = series.columns.indexOf("time_ms");
    const times = series.maps.length > 0 ? series.maps : series.rows.map((row) => row[timeAt]);
    const at = chosen ?? Infinity;
    const far = (series.to - series.from) / 10;
    const back = (until) => times.findLast((time) => time < until) ?? times[0] ?? null;
    const on = (from) => times.find((time) => time > from) ?? null;
    const from = Math.min(at, series.to);
    if (event.key === "ArrowLeft" || event.key === "ArrowDown") choose(back((chosen ?? picture?.map.time_ms ?? series.to) - 500));
    else if (event.key === "ArrowRight" || event.key === "ArrowUp") choose(chosen === null ? null : on(at + 500));
    else if (event.key === "PageDown") choose(back(from - far));
    else if (event.key === "PageUp") choose(chosen === null ? null : on(from + far));
    else if (event.key === "Home") choose(times[0] ?? null);
    else if (event.key === "End" || event.key === "Escape") choose(null);
    else return;
    event.preventDefault();
  });
  byId("live").addEventListener("click", () => choose(null));
  byId("span").addEventListener("change", () => {
    const from = now.time_ms - Number(byId("span").value);
    if (chosen !== null && chosen < from) choose(null);
    loadSeries().catch(showTrouble);
  });
}
