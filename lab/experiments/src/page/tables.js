// A table is one stop of the Tab key: within it the arrow keys move between figures. Without this script each figure is a stop of its own.

const FIGURE = "a.figure";
const tables = [...document.querySelectorAll(".scroll > table:not(.summary)")].filter((table) => table.querySelector(FIGURE));

for (const table of tables) {
  table.querySelectorAll(FIGURE).forEach((figure, place) => { figure.tabIndex = place === 0 ? 0 : -1; });
  // Its figures scroll the table, so the frame around it need not be a stop as well.
  table.parentElement.removeAttribute("tabindex");
  table.parentElement.setAttribute("aria-describedby", "keys");
}

const tableOf = (figure) => tables.find((table) => table.contains(figure));

// Returns the figure that a key leads to: undefined for other keys, and if the browser must scroll first.
function figureBy(key, figure, table) {
  const all = [...table.querySelectorAll(FIGURE)];
  const row = figure.closest("tr");
  const inRow = all.filter((other) => row.contains(other));
  const { cellIndex } = figure.closest("td");
  const inColumn = all.filter((other) => other === figure || (other.closest("td").cellIndex === cellIndex && !row.contains(other)));
  switch (key) {
    case "ArrowLeft": return figure === inRow[0] && hasMore("left", row, figure) ? undefined : all[all.indexOf(figure) - 1];
    case "ArrowRight": return figure === inRow.at(-1) && hasMore("right", row) ? undefined : all[all.indexOf(figure) + 1];
    case "ArrowUp": return inColumn[inColumn.indexOf(figure) - 1];
    case "ArrowDown": return inColumn[inColumn.indexOf(figure) + 1];
    case "Home": return inRow[0];
    case "End": return inRow.at(-1);
    case "Ctrl+Home": return all[0];
    case "Ctrl+End": return all.at(-1);
    default: return undefined;
  }
}

// Returns whether there are cells without figures beyond the row's outermost figure, out of view.
function hasMore(side, row, figure) {
  const frame = row.closest(".scroll");
  if (side === "left") return frame.scrollLeft > 1 && row.cells[1] !== figure.closest("td");
  return row.lastElementChild.getBoundingClientRect().right > frame.getBoundingClientRect().right + 1;
}

document.addEventListener("keydown", (event) => {
  const figure = event.target.closest?.(FIGURE);
  const table = figure && tableOf(figure);
  if (!table || event.altKey || event.metaKey || event.shiftKey) return;
  const next = figureBy(event.ctrlKey ? `Ctrl+${event.key}` : event.key, figure, table);
  if (!next) return;
  event.preventDefault();
  next.focus({ preventScroll: true });
  next.closest("td").scrollIntoView({ block: "nearest", inline: "nearest" });
});

// Tab returns to the last figure; while a figure has the keyboard focus, a hint shows the keys.
document.addEventListener("focusin", (event) => {
  const figure = event.target.closest?.(FIGURE);
  const table = figure && tableOf(figure);
  byId("keys").hidden = !(table && figure.matches(":focus-visible"));
  if (!table) return;
  table.querySelector(`${FIGURE}[tabindex="0"]`).tabIndex = -1;
  figure.tabIndex = 0;
});
document.addEventListener("focusout", () => { byId("keys").hidden = true; });
