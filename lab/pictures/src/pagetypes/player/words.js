// Creating elements; formatting of numbers, sizes and times.

function element(tag, attributes = {}, ...children) {
  const created = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) created.setAttribute(name, value);
  created.append(...children);
  return created;
}

function shape(tag, attributes = {}, text = "") {
  const created = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) created.setAttribute(name, value);
  created.textContent = text;
  return created;
}

// Formats 1234567 as 1 234 567, with thin spaces.
const whole = (number) => String(number).replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");

const round = (number) => {
  if (Math.abs(number) >= 1000) return whole(Math.round(number));
  return String(+number.toPrecision(3));
};

const plural = (count, one, more = `${one}s`) => `${whole(count)} ${count === 1 ? one : more}`;

function share(part, all) {
  if (all === 0 || part === 0) return "0 %";
  const percent = part / all * 100;
  return percent < 0.1 ? "<0.1 %" : `${percent.toFixed(1)} %`;
}

function bytes(count) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  while (count >= 1024 && unit < units.length - 1) { count /= 1024; unit += 1; }
  return `${+count.toFixed(1)} ${units[unit]}`;
}

function duration(seconds) {
  const two = (number) => String(Math.floor(number)).padStart(2, "0");
  if (seconds < 120) return `${seconds.toFixed(1)} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min ${two(seconds % 60)} s`;
  return `${Math.floor(seconds / 3600)} h ${two(seconds / 60 % 60)} min`;
}

// Parses the number that a text starts with, and the rest: "61.5 %" is 61.5 and "%". Null without a number.
function quantity(text) {
  const found = /^\s*([-+]?(?:\d[\d,_\s\u202f]*)?\.?\d+(?:e[-+]?\d+)?)\s*(.*)$/i.exec(text);
  if (!found) return null;
  const value = Number(found[1].replace(/[,_\s\u202f]/g, ""));
  return Number.isFinite(value) ? { value, unit: found[2] } : null;
}

// Kinds in the order of the legend: kinds in use, then free, then absent.
const LEGEND = [2, 3, 4, 5, 6, 1, 0];
const anyAbsent = about.films.some((film) => film.shots.some((shot) => shot.counts[ABSENT] > 0));
const SHOWN = LEGEND.filter((kind) => kind !== ABSENT || anyAbsent);

const theme = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => {
  const forced = document.documentElement.dataset.theme;
  return forced ? forced === "dark" : theme.matches;
};
const colorOf = (kind) => KINDS[kind][isDark() ? "dark" : "light"];

function channels(color) {
  return [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16));
}

const mixed = (color, ground, part) => color.map((channel, i) => Math.round(channel * part + ground[i] * (1 - part)));

function swatch(kind) {
  const dark = kind === 4 || kind === 5 ? " dark" : kind <= FREE ? " faint" : "";
  const created = element("span", { class: `swatch${dark}`, style: `--kind: ${colorOf(kind)}`, "aria-hidden": "true" }, KINDS[kind].letter);
  created.dataset.kind = kind;
  return created;
}
