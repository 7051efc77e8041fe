// The headline and the tables: what the host's lists say now.

const WAYS = {
  now: "now, without help",
  pool: "by nr_hugepages",
  compacted: "after compact_memory",
  dropped: "after sync, drop_caches, compact_memory",
};
const COUNTERS = {
  allocation_stalls: "requests that waited for reclaim",
  compaction_stalls: "requests that waited for compaction",
  compaction_successes: "… and got their block",
  compaction_failures: "… in vain",
  thp_faults: "faults that got a huge page",
  thp_fault_fallbacks: "faults that got small pages instead",
};
const FALLBACKS_MOST = 20;

const sumOf = (zones, of) => zones.reduce((sum, zone) => sum + of(zone), 0);
const isUsed = (zone) => zone.managed > 0;

// Frames that are free in blocks smaller than a huge page.
function smallFree(zone) {
  const small = zone.free_blocks.slice(0, now.huge_order).reduce((sum, blocks, order) => sum + blocks * 2 ** order, 0);
  return Math.min(small, zone.free);
}

// Huge pages in the free lists.
function hugeFree() {
  if (isKnown(now.huge_free)) return now.huge_free;
  return sumOf(now.zones, (zone) => zone.free_blocks.reduce((sum, blocks, order) => sum + (order < now.huge_order ? 0 : blocks * 2 ** (order - now.huge_order)), 0));
}

const plural = (count, one, many = `${one}s`) => `${countText(count)} ${count === 1 ? one : many}`;

function headline() {
  const free = sumOf(now.zones, (zone) => zone.free);
  const small = sumOf(now.zones, smallFree);
  const huge = framesText(2 ** now.huge_order);
  const count = hugeFree();
  let text = count > 0 ? `${plural(count, "huge page")} of ${huge} can be had now, without help` : `No huge page of ${huge} can be had now without help`;
  const best = (now.forecasts?.ways ?? []).reduce((a, b) => (a === null || b.likely > a.likely * 1.05 ? b : a), null);
  if (best && best.way !== "now") text += `; ${WAYS[best.way] ?? best.way} likely ${countText(best.likely)}`;
  text += `. ${framesText(free)} are free, of which ${framesText(small)} in blocks smaller than a huge page.`;
  if (now.blocks) text += now.blocks.mixed === 0 ? " No page block is mixed." : ` ${plural(now.blocks.mixed, "page block is", "page blocks are")} mixed.`;
  return text;
}

// The headline of a time of the past, by the figures of then; null if there are none.
function headlineThen() {
  const then = (column) => figureAt(column, chosen);
  if (!isKnown(then("free_bytes"))) return null;
  let text = `At ${timeText(chosen)}: ${plural(then("huge_free") ?? 0, "huge page")} could be had without help`;
  if (isKnown(then("huge_dropped_likely"))) text += `; ${WAYS.dropped} likely ${countText(then("huge_dropped_likely"))}`;
  text += `. ${bytesText(then("free_bytes"))} were free, of which ${bytesText(then("free_bytes") * (then("unusable_huge") ?? 0))} in blocks smaller than a huge page.`;
  if (isKnown(then("blocks_mixed"))) text += ` ${plural(then("blocks_mixed"), "page block was", "page blocks were")} mixed.`;
  return text;
}

// Tells the headline of the time that is shown.
function tellHeadline() {
  const text = chosen === null || !series ? headline() : headlineThen() ?? `At ${timeText(chosen)} nothing was recorded.`;
  setText("headline", text);
  byId("facts").hidden = chosen !== null;
  document.body.classList.toggle("back", chosen !== null);
  if (chosen === null) speak(text);
}

let spoken = { at: 0, can: null };

// Has the headline read out: at first, when huge pages come to an end or come back, else seldom.
function speak(text) {
  const can = hugeFree() > 0;
  if (can === spoken.can && Date.now() - spoken.at < 300000) return;
  spoken = { at: Date.now(), can };
  setText("spoken", text);
}

function fill(body, rows) {
  body.replaceChildren(...rows.map((cells) => {
    const row = element("tr");
    row.append(...cells.map((cell, at) => {
      const box = element(at === 0 ? "th" : "td", "");
      if (at === 0) box.scope = "row";
      box.append(cell);
      if (cell === "0") box.className = "zero";
      return box;
    }));
    return row;
  }));
}

// Returns a bar of this share of its cell.
function bar(share, colour) {
  const whole = element("span", "", "share");
  const part = element("span");
  part.style.width = `${(100 * Math.max(0, Math.min(1, share))).toFixed(2)}%`;
  part.style.background = colour;
  whole.append(part);
  return whole;
}

function showForecasts() {
  const ways = now.forecasts?.ways ?? [];
  const most = ways.reduce((most, way) => Math.max(most, way.at_most), 1);
  const rows = ways.map((way) => [WAYS[way.way] ?? way.way, countText(way.likely), countText(way.at_least), countText(way.at_most), bar(way.likely / most, colourOf(KINDS.movable))]);
  fill(byId("forecasts"), rows.length > 0 ? rows : [[WAYS.now, countText(hugeFree()), "–", "–", ""]]);
  setText("forecast-note", rows.length > 0
    ? `Blocks of ${framesText(2 ** now.forecasts.order)}, by the kernel's own rules on a copy of the frames of ${timeText(now.forecasts.time_ms ?? now.forecasts["asked at"])}.`
    : now.frames ? "The kernel's lists have no blocks of this order to forecast." : "The other ways need the state of every frame.");
}

function showUses() {
  const uses = Object.entries(now.memory_use).filter(([, count]) => count > 0).sort((a, b) => b[1] - a[1]);
  const total = uses.reduce((sum, [, count]) => sum + count, 0);
  // The kernel's counters tell two kinds of slab.
  const entry = (name) => USES[name] ?? USES[name.split(",")[0]];
  fill(byId("uses"), uses.map(([name, count]) => [USES[name]?.[1] ?? name, framesText(count), shareText(count / total), bar(count / total, entry(name) ? colourOf(entry(name)) : faintColour())]));
  setText("uses-note", uses.length === 0 ? "Not read: see below." : now.frames ? "" : "By the kernel's counters, which do not name all memory.");
}

function showFallbacks() {
  const rows = [...(now.fallbacks ?? [])].sort((a, b) => b.count - a.count);
  fill(byId("fallbacks"), rows.slice(0, FALLBACKS_MOST).map((row) => [row.process, row.mobility, row.from, countText(row.count)]));
  byId("fallbacks").parentElement.hidden = rows.length === 0;
  const more = rows.length > FALLBACKS_MOST ? ` The ${FALLBACKS_MOST} most of ${countText(rows.length)}.` : "";
  setText("fallbacks-note", !now.fallbacks ? "Not traced: see what is not read." : rows.length === 0
    ? "None since the service began: every request found memory of its own mobility."
    : `Requests that took memory from page blocks of another mobility, since the service began.${more}`);
}

function showZones() {
  const zones = now.zones.filter(isUsed);
  const orders = Math.max(0, ...zones.map((zone) => zone.free_blocks.length));
  const heads = ["zone", "managed", "free", "per-CPU", "min", "low", "high", ...Array.from({ length: orders }, (_, order) => String(order)), `unusable`];
  const row = element("tr");
  row.append(...heads.map((head) => {
    const cell = element("th", head);
    cell.scope = "col";
    if (/^\d+$/.test(head)) cell.title = `free blocks of order ${head}, ${framesText(2 ** Number(head))}`;
    if (head === "unusable") cell.title = `share of free memory that is in blocks smaller than order ${now.huge_order}`;
    if (Number(head) === now.huge_order) cell.className = "huge";
    return cell;
  }));
  byId("zones").tHead.replaceChildren(row);
  fill(byId("zones").tBodies[0], zones.map((zone) => [
    `node ${zone.node} ${zone.name}${zone.free < zone.low ? ", below low" : ""}`,
    framesText(zone.managed), framesText(zone.free), framesText(zone.idle), framesText(zone.min), framesText(zone.low), framesText(zone.high),
    ...Array.from({ length: orders }, (_, order) => countText(zone.free_blocks[order])),
    shareText(zone.unusable?.[now.huge_order]),
  ]));
  setText("zones-note", `Columns 0 to ${orders - 1}: free blocks of that order; ${now.huge_order} is a huge page. Unusable: the share of free memory in blocks smaller than one.`);
}

function showCost() {
  const rows = (now.withheld ?? []).map(({ source, why }) => {
    const item = element("li");
    item.append(element("b", source), `: ${why}`);
    return item;
  });
  byId("withheld").replaceChildren(...(rows.length > 0 ? rows : [element("li", "Everything is read.")]));
  const { cost } = now;
  const budget = isKnown(cost.budget) ? ` (sampling keeps to ${(100 * cost.budget).toFixed(2)} % on average)` : "";
  const pass = now.frames ? ` The last pass over all frames took ${ageText(1000 * now.frames.pass_seconds)}` : "";
  const next = now.pass ? `${pass === "" ? " The first pass over all frames" : "; the next"} is ${Math.round(100 * now.pass.done)} % done` : "";
  setText("cost", `Brickyard itself: ${(100 * cost.share).toFixed(2)} % of one CPU since it began${budget}, ${bytesText(cost.resident_bytes)} of memory.${pass}${next}${pass + next === "" ? "" : "."}`);
}

// What stands in the place of the picture where there is none.
function showNothing() {
  const isComing = isKnown(now.pass) && !now.frames;
  setText("nothing", missing !== null ? `No picture: ${missing}.` : isComing
    ? `The first pass over all frames is ${Math.round(100 * now.pass.done)} % done; then the picture of memory is here.`
    : "What is in each page block is known to root only. Run by root, the service opens the files and then gives root up; this page then also has the picture of memory down to single pages, mixed page blocks, and forecasts of what compaction and drop_caches would give.");
}

function showNow() {
  document.title = `${now.host || "host"} – Brickyard`;
  setText("host", now.host || "unnamed host");
  const pairs = [
    ["available", bytesText(now.available_bytes)],
    ["free", framesText(sumOf(now.zones, (zone) => zone.free))],
    ["in per-CPU lists", framesText(sumOf(now.zones, (zone) => zone.idle))],
    ["managed", framesText(sumOf(now.zones, (zone) => zone.managed))],
    ["pinned", now.pinned > 0 ? framesText(now.pinned) : null],
    ["regions of 1 GiB", isKnown(now.gigantic) ? `${countText(now.gigantic.free)} free, ${countText(now.gigantic.emptiable)} could be emptied` : null],
  ].filter(([, value]) => value !== null && value !== "–");
  byId("facts").replaceChildren(...pairs.map(([name, value]) => {
    const pair = element("div");
    pair.append(element("dt", name), element("dd", value));
    return pair;
  }));
  showForecasts();
  showUses();
  showFallbacks();
  fill(byId("counters"), Object.entries(COUNTERS).map(([key, name]) => [name, countText(now.counters?.[key])]));
  showZones();
  showCost();
  showNothing();
  schedule();
}
