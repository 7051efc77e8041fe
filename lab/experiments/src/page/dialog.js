// The dialog of a figure: its number, the results of its tests, its raw rows, and the commands that measure them again.

const COLUMNS = ["machine", "workload", "config", "metric", "run", "at", "value", "unit", "cell", "seed", "kind", "host"];
const ROWS_MAX = 1000;

const dialog = byId("rows");
let opener = null;

const digits = (text, count = 4) => String(Number(Number(text).toPrecision(count)));

// Returns the statistic in words. A table may invert the sign of its numbers, as its document does.
function statisticOf({ statistic, scale }) {
  const [words, better] = embedded().statistics[statistic] ?? [statistic, null];
  if (better === null) return words;
  if (Number(scale ?? 1) > 0) return `${words}; ${better} is better`;
  return `${words}, with its sign inverted: ${better === "positive" ? "negative" : "below -1"} is better`;
}

// Returns the number of the heading before it was rounded; if it is shown as a multiple, also the value from the rows.
function exactly({ value, unit, scale }) {
  const given = `${value} ${unit}`;
  return scale === undefined ? given : `${Number(value) * Number(scale)}, which is ${scale} times ${given}`;
}

function facts(figure) {
  const data = figure.dataset;
  const list = [["Statistic", statisticOf(data)]];
  list.push(["Unrounded", exactly(data)]);
  if (data.published !== undefined) list.push(["Published", data.published]);
  list.push([data.statistic === "gmean-speedup" ? "Pairs" : "Samples", data.n]);
  if (data.speedup !== undefined) list.push(["Speedup over the baseline", `${digits(data.speedup)} times; above 1 is better`]);
  if (data.low !== undefined) list.push(["Its 95 % interval", `${digits(data.low)} to ${digits(data.high)}${data.intervalBy === undefined ? "" : ` (${data.intervalBy})`}`]);
  if (data.p !== undefined) list.push(["p", digits(data.p, 3)]);
  if (data.pHolm !== undefined) list.push(["p after Holm's correction", digits(data.pHolm, 3)]);
  if (data.assumed !== undefined) list.push(["Certainty", "one deterministic run of an assumed machine: it decides nothing by itself"]);
  if (data.sweep !== undefined) list.push(["Under other assumptions", data.sweep]);
  if (data.verdict !== undefined) list.push(["Direction", data.verdict]);
  return list;
}

const classOf = (column) => (["run", "at", "value"].includes(column) ? { class: "number" } : {});

// Fills the table of rows. A column in which all rows are equal is left out and returned, to be shown once above.
function fillRows(rows) {
  const table = byId("rows-table");
  const shown = COLUMNS.filter((column) => rows.some((row) => row[column] !== undefined));
  const alike = (column) => rows.length > 1 && column !== "value" && rows.every((row) => row[column] === rows[0][column]);
  const several = shown.filter((column) => !alike(column));
  table.tHead.replaceChildren(element("tr", {}, ...["row", ...several].map((column) => element("th", { scope: "col", ...classOf(column) }, column))));
  table.tBodies[0].replaceChildren(...rows.slice(0, ROWS_MAX).map((row) => element("tr", { "data-row": row.place },
    element("th", { scope: "row" }, String(row.place)), ...several.map((column) => element("td", classOf(column), String(row[column] ?? ""))))));
  const left = rows.length - ROWS_MAX;
  if (left > 0) table.tBodies[0].append(element("tr", {}, element("td", { colspan: several.length + 1 }, `and ${left} more, in rows.csv`)));
  return shown.filter(alike).map((column) => [column, String(rows[0][column])]);
}

function fillCommands(rows) {
  const commands = [...new Map(rows.map((row) => [row.cell, row.command])).values()];
  const shown = commands.slice(0, 40).map((command) => {
    const code = element("div", { class: "code" }, element("pre", { tabindex: "0" }, element("code", {}, command)));
    addCopy(code);
    return code;
  });
  byId("rows-commands").replaceChildren(...shown);
  const left = commands.length - shown.length;
  if (left > 0) byId("rows-commands").append(element("p", {}, `and ${left} more ${left === 1 ? "cell, which is" : "cells, which are"} in the column "cell"`));
}

// Returns what all own rows of a figure have in common, for the heading.
function named(rows) {
  const common = (column) => (rows.every((row) => row[column] === rows[0][column]) ? rows[0][column] : null);
  return ["config", "workload", "metric", "machine"].map(common).filter(Boolean).join(" \u00b7 ");
}

function openFigure(figure) {
  const rows = placesOf(figure).map(rowAt);
  const own = figure.dataset.statistic === "gmean-speedup" ? rows : rows.slice(0, Number(figure.dataset.n));
  opener = figure;
  byId("rows-title").replaceChildren(element("span", { class: "big" }, figure.textContent), ` ${named(own)}`);
  const alike = fillRows(rows);
  byId("rows-facts").replaceChildren(...[...facts(figure), ...alike].map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value))));
  fillCommands(rows);
  dialog.showModal();
  dialog.scrollTop = 0;
  byId("rows-title").focus();
}

function closeFigure() {
  dialog.close();
}

document.addEventListener("click", (event) => {
  const figure = event.target.closest?.("a.figure");
  if (figure && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
    event.preventDefault();
    openFigure(figure);
  }
});

// A figure acts as a button, so it takes a button's keys too.
document.addEventListener("keydown", (event) => {
  const figure = event.target.closest?.("a.figure");
  const plain = !event.ctrlKey && !event.metaKey && !event.altKey;
  if (figure && plain && (event.key === " " || event.key === "Enter")) {
    event.preventDefault();
    openFigure(figure);
  } else if (event.key === "Escape" && dialog.open) {
    event.preventDefault();
    closeFigure();
  }
});

dialog.addEventListener("click", (event) => { if (event.target === dialog) closeFigure(); });
dialog.addEventListener("close", () => { opener?.focus(); opener = null; });
document.querySelectorAll("a.figure").forEach((figure) => {
  figure.setAttribute("role", "button");
  figure.setAttribute("aria-haspopup", "dialog");
});
