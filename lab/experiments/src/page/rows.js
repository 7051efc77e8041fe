// The rows embedded in the page: parsed when the first one is needed.

const byId = (id) => document.getElementById(id);
const options = new URLSearchParams(location.hash.slice(1));
if (options.has("theme")) document.documentElement.dataset.theme = options.get("theme");

let parsed = null;

function embedded() {
  parsed ??= JSON.parse(byId("rows-embedded").textContent);
  return parsed;
}

// Returns a row as an object; its place is its line in rows.csv below the head, from 0.
function rowAt(place) {
  const { rows, keys, cells, hosts } = embedded();
  const [key, cell, run, value, at] = rows[place];
  const [machine, workload, config, metric, unit, better] = keys[key];
  const [name, kind, seed, host, command] = cells[cell];
  return { place, machine, workload, config, metric, run, at, value, unit, better, cell: name, kind, seed, host: hosts[host], command };
}

const placesOf = (figure) => figure.dataset.rows.split(",").filter(Boolean).map(Number);

// Returns a new element with attributes and children; strings become text, not markup.
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}
