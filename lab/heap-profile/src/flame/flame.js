// The flame graph: the tree of calls as rows of blocks, in inline SVG.

const byId = (id) => document.getElementById(id);
const about = JSON.parse(byId("about").textContent);
const ROW = 19;
const LEAST_WIDTH = 0.4;
const LETTER = 7.25;
const SVG = "http://www.w3.org/2000/svg";

// Node 0 is all; the others come in the order of the page, each before those that it called.
const nodes = [{ name: "all", depth: -1, above: null, below: [], values: [0, 0, 0, 0] }];
const path = [nodes[0]];
for (const [depth, name, ...values] of about.nodes) {
  const above = path[depth];
  const node = { name: about.names[name], depth, above, below: [], values };
  above.below.push(node);
  if (depth === 0) values.forEach((value, i) => { nodes[0].values[i] += value; });
  nodes.push(node);
  path[depth + 1] = node;
}

const shown = { zoomed: nodes[0], space: about.live ? "live" : "all", measure: "bytes", search: "" };
const valueOf = (node) => node.values[(shown.space === "live" ? 0 : 2) + (shown.measure === "bytes" ? 0 : 1)];

function amount(bytes) {
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  while (bytes >= 1024 && at < units.length - 1) { bytes /= 1024; at += 1; }
  return `${at === 0 ? bytes : bytes.toFixed(1)} ${units[at]}`;
}

function described(node) {
  const at = shown.space === "live" ? 0 : 2;
  const [bytes, objects] = [node.values[at], node.values[at + 1]];
  const share = 100 * valueOf(node) / (valueOf(nodes[0]) || 1);
  return `${node.name}: ${amount(bytes)} in ${objects.toLocaleString("en")} objects, ${share.toFixed(1)} %`;
}

// Warm colours, fixed by the name, so that a function has the same everywhere.
function colour(name) {
  let hash = 2166136261;
  for (let i = 0; i < name.length; i += 1) hash = Math.imul(hash ^ name.charCodeAt(i), 16777619);
  const part = (shift) => ((hash >>> shift) & 255) / 255;
  return `hsl(${(8 + 44 * part(0)).toFixed(0)} ${(70 + 20 * part(8)).toFixed(0)}% ${(62 + 13 * part(16)).toFixed(0)}%)`;
}

function block(node, x, width, row, kind) {
  const group = document.createElementNS(SVG, "g");
  const rect = document.createElementNS(SVG, "rect");
  const set = (element, values) => Object.entries(values).forEach(([key, value]) => element.setAttribute(key, value));
  set(group, { tabindex: 0, role: "button", "aria-label": described(node) });
  group.classList.add(kind);
  set(rect, { x: x.toFixed(2), y: row * ROW, width: Math.max(width, LEAST_WIDTH).toFixed(2), height: ROW - 1, rx: 2 });
  rect.style.fill = colour(node.name);
  group.append(rect);
  const letters = Math.floor((width - 8) / LETTER);
  if (letters >= 3) {
    const text = document.createElementNS(SVG, "text");
    set(text, { x: (x + 4).toFixed(2), y: row * ROW + 13 });
    text.textContent = node.name.length > letters ? `${node.name.slice(0, letters - 1)}…` : node.name;
    group.append(text);
  }
  if (shown.search && node.name.toLowerCase().includes(shown.search)) group.classList.add("found");
  group.addEventListener("click", () => zoom(node));
  group.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); zoom(node); } });
  const tell = () => { byId("told").textContent = described(node); };
  group.addEventListener("pointerenter", tell);
  group.addEventListener("focus", tell);
  return group;
}

function draw() {
  const width = Math.max(240, byId("graph").clientWidth);
  const svg = document.createElementNS(SVG, "svg");
  let rows = 0;
  const put = (node, x, wide, kind) => {
    rows = Math.max(rows, node.depth + 2);
    svg.append(block(node, x, wide, node.depth + 1, kind));
  };
  for (let node = shown.zoomed.above; node; node = node.above) put(node, 0, width, "above");
  const waiting = [[shown.zoomed, 0, width]];
  while (waiting.length > 0) {
    const [node, x, wide] = waiting.pop();
    put(node, x, wide, "block");
    const whole = valueOf(node);
    let from = x;
    for (const below of node.below) {
      const part = whole > 0 ? wide * valueOf(below) / whole : 0;
      if (part >= LEAST_WIDTH) waiting.push([below, from, part]);
      from += part;
    }
  }
  svg.setAttribute("viewBox", `0 0 ${width} ${rows * ROW}`);
  svg.setAttribute("height", rows * ROW);
  svg.setAttribute("aria-label", "Flame graph");
  svg.classList.toggle("searched", shown.search !== "");
  byId("graph").replaceChildren(svg);
  byId("whole").disabled = shown.zoomed === nodes[0];
  byId("lede").textContent = described(nodes[0]).replace(/^all: /, shown.space === "live" ? "Live: " : "All ever: ").replace(/, 100.0 %$/, "");
  showFound();
}

// What all blocks with the name have together, of which none is below another.
function showFound() {
  if (!shown.search) { byId("found").textContent = ""; return; }
  let sum = 0;
  let count = 0;
  const waiting = [nodes[0]];
  while (waiting.length > 0) {
    const node = waiting.pop();
    if (node !== nodes[0] && node.name.toLowerCase().includes(shown.search)) { sum += valueOf(node); count += 1; } else { waiting.push(...node.below); }
  }
  byId("found").textContent = `found: ${(100 * sum / (valueOf(nodes[0]) || 1)).toFixed(1)} % in ${count} ${count === 1 ? "place" : "places"}`;
}

function zoom(node) {
  shown.zoomed = node;
  draw();
  byId("told").textContent = described(node);
}

byId("space-choice").hidden = !about.all;
byId("space").value = shown.space;
byId("space").addEventListener("change", () => { shown.space = byId("space").value; draw(); });
byId("measure").addEventListener("change", () => { shown.measure = byId("measure").value; draw(); });
byId("search").addEventListener("input", () => { shown.search = byId("search").value.trim().toLowerCase(); draw(); });
byId("whole").addEventListener("click", () => zoom(nodes[0]));
addEventListener("keydown", (event) => { if (event.key === "Escape") zoom(nodes[0]); });
addEventListener("resize", draw);
// `#search=NAME` and `#zoom=NAME` open the page at a place, for links to it.
const options = new URLSearchParams(location.hash.slice(1));
if (options.has("search")) { byId("search").value = options.get("search"); shown.search = options.get("search").toLowerCase(); }
if (options.has("zoom")) shown.zoomed = nodes.find((node) => node.name === options.get("zoom")) ?? nodes[0];
draw();
