// With #selftest the page tests itself, and reports the result on the console and in the attribute data-selftest of its
// root element.

async function selfTest() {
  const must = (holds, what) => { if (!holds) throw new Error(what); };
  const turn = () => new Promise((done) => { setTimeout(done); });

  // Every figure links to rows that exist.
  const figures = [...document.querySelectorAll("a.figure")];
  for (const figure of figures) {
    const places = placesOf(figure);
    must(places.length > 0 && places.every((place) => embedded().rows[place]), `rows of ${figure.outerHTML}`);
    must(Number.isFinite(Number(figure.dataset.value)), `a number in ${figure.outerHTML}`);
  }

  // Every plot has all its curves, and each is visible.
  const plots = [...document.querySelectorAll("svg.plot")];
  let curves = 0;
  for (const plot of plots) {
    const bounds = plot.getBoundingClientRect();
    const drawn = [...plot.querySelectorAll("g.curve")];
    must(drawn.length > 0 && bounds.width > 0, `the plot ${plot.textContent.slice(0, 80)} is empty`);
    for (const curve of drawn) {
      const box = curve.getBoundingClientRect();
      must(box.width > 0 && box.height > 0, `the curve ${curve.dataset.curve} has no size`);
      must(box.left >= bounds.left - 12 && box.right <= bounds.right + 12 && box.top >= bounds.top - 12 && box.bottom <= bounds.bottom + 12, `the curve ${curve.dataset.curve} leaves its plot`);
      must(curve.querySelector("path.mark"), `the curve ${curve.dataset.curve} has no marker`);
      curves += 1;
    }
    for (const text of plot.querySelectorAll("text")) {
      const box = text.getBoundingClientRect();
      must(box.left >= bounds.left - 2 && box.right <= bounds.right + 2 && box.bottom <= bounds.bottom + 2, `"${text.textContent}" leaves its plot`);
      must(box.height > 9, `"${text.textContent}" is too small to read`);
    }
  }

  // The dialog: opened by keys, shows the figure's rows, closed by Escape, and the focus is back.
  const key = (target, key) => target.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  const shownRows = () => [...document.querySelectorAll("#rows-table [data-row]")].map((row) => Number(row.dataset.row));
  const scaled = figures.filter((figure) => figure.dataset.scale !== undefined);
  for (const [i, figure] of [...figures.slice(0, 40), ...scaled.slice(0, 40)].entries()) {
    figure.closest("details")?.setAttribute("open", "");
    figure.focus();
    must(document.activeElement === figure, "a figure takes the focus");
    key(figure, i % 2 ? " " : "Enter");
    must(dialog.open && dialog.contains(document.activeElement), "a key opens the dialog");
    must(String(shownRows()) === String(placesOf(figure)), `the dialog has the rows of ${figure.outerHTML}`);
    must(dialog.textContent.includes(figure.dataset.value), "the dialog has the number");
    must(agree(figure.textContent, unrounded()), `the heading ${figure.textContent} is ${unrounded()}, rounded`);
    const cells = new Set(placesOf(figure).map((place) => rowAt(place).command));
    must(document.querySelectorAll("#rows-commands code").length === Math.min(40, cells.size), "the dialog has the commands");
    key(document.activeElement, "Escape");
    await turn();
    must(!dialog.open && document.activeElement === figure, "Escape closes it, and the focus is back");
  }
  if (figures.length > 0) {
    figures[0].click();
    must(dialog.open, "a click opens the dialog");
    byId("rows-close").click();
    must(!dialog.open, "its button closes it");
  }

  // A table is one stop, from which the arrow keys reach every figure and come back.
  for (const table of tables) {
    table.closest("details")?.setAttribute("open", "");
    const all = [...table.querySelectorAll(FIGURE)];
    const stops = all.filter((figure) => figure.tabIndex === 0);
    must(stops.length === 1 && table.parentElement.tabIndex < 0, `${stops.length} stops in the table ${table.caption.textContent}`);
    stops[0].focus();
    key(stops[0], "Home");
    walk("ArrowRight", all.slice(all.indexOf(document.activeElement)));
    walk("ArrowLeft", [...all].reverse());
    const column = all[0].closest("td").cellIndex;
    const down = all.filter((figure) => figure.closest("td").cellIndex === column);
    if (new Set(down.map((figure) => figure.closest("tr"))).size === down.length) {
      walk("ArrowDown", down);
      walk("ArrowUp", down.reverse());
    }
    must(all[0].tabIndex === 0 && all.filter((figure) => figure.tabIndex === 0).length === 1, "Tab returns to the last figure");
  }
  function walk(name, figures) {
    for (const figure of figures) {
      const frame = figure.closest(".scroll");
      must(document.activeElement === figure, `${name} leads to ${figure.outerHTML}`);
      key(figure, name);
      // A synthetic event does not scroll as a key press does, which shows the cells without figures first.
      while (document.activeElement === figure && figure !== figures.at(-1) && scrolls(frame, name)) key(figure, name);
    }
  }
  function scrolls(frame, name) {
    const before = frame.scrollLeft;
    frame.scrollLeft += name === "ArrowRight" ? 40 : -40;
    return frame.scrollLeft !== before;
  }

  // Nothing is wider than the page; what is wide scrolls by itself.
  document.querySelectorAll("details").forEach((details) => { details.open = true; });
  must(document.documentElement.scrollWidth <= innerWidth, `the page is ${document.documentElement.scrollWidth} wide, the window ${innerWidth}`);

  // Both colour schemes: text and background differ enough.
  const root = document.documentElement;
  const before = root.dataset.theme;
  for (const theme of ["light", "dark"]) {
    root.dataset.theme = theme;
    const of = (selector, what) => { const found = document.querySelector(selector); return found && luminance(getComputedStyle(found)[what]); };
    const ground = luminance(getComputedStyle(document.body).backgroundColor);
    must(theme === "dark" ? ground < 0.05 : ground > 0.85, `the background in ${theme}`);
    const lowest = [["body", "color", 7], [".muted", "color", 4.5], ["a.figure", "color", 4.5], [".published", "color", 4.5],
      ...[0, 1, 2, 3, 4, 5, 6, 7].map((hue) => [`.hue-${hue} .mark`, "fill", 3]),
      [".verdict.same", "color", 4.5], [".verdict.opposite", "color", 4.5], [".verdict.noise", "color", 4.5], [".verdict.none", "color", 4.5]];
    for (const [selector, what, least] of lowest) {
      const color = of(selector, what);
      if (color === null) continue;
      const contrast = (Math.max(color, ground) + 0.05) / (Math.min(color, ground) + 0.05);
      must(contrast >= least, `${selector} has a contrast of ${contrast.toFixed(2)} in ${theme}`);
    }
  }
  if (before) root.dataset.theme = before; else delete root.dataset.theme;

  // Each player plays, in a frame of its own, which tests itself.
  for (const player of players) must(await playerTest(player), "a player's self-test");
  return `ok: ${figures.length} figures, ${plots.length} plots, ${curves} curves, ${players.length} players, ${innerWidth} wide`;
}

// Returns the unrounded number of the open dialog.
function unrounded() {
  const all = [...document.querySelectorAll("#rows-facts div")];
  return parseFloat(all.find((fact) => fact.firstChild.textContent === "Unrounded").lastChild.textContent);
}

// Returns whether a text is the number, rounded. Words are not numbers.
function agree(text, number) {
  const bare = text.replace(/[,%]/g, "");
  const rounded = Number(bare);
  const digits = bare.split(".")[1]?.length ?? 0;
  return !Number.isFinite(rounded) || Math.abs(rounded - number) <= Math.max(0.501 * 10 ** -digits, Math.abs(number) * 0.001);
}

// Returns the relative luminance of "rgb(r, g, b)".
function luminance(color) {
  const parts = color.match(/[\d.]+/g).slice(0, 3).map((part) => {
    const value = Number(part) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
}

// Loads the same frame again, with a name that requests the self-test. A frame out of view is not drawn and does not play, so it is scrolled into view.
function playerTest(player) {
  const frame = element("iframe", { class: "player", sandbox: "allow-scripts", title: "self-test", name: "selftest" });
  return new Promise((done) => {
    const inView = setInterval(() => frame.scrollIntoView({ block: "center" }), 100);
    addEventListener("message", (event) => {
      if (event.source !== frame.contentWindow || !event.data?.selftest) return;
      clearInterval(inView);
      done(String(event.data.selftest).startsWith("ok") && frame.style.height !== "");
      frame.replaceWith(player);
    });
    frame.srcdoc = player.srcdoc;
    player.replaceWith(frame);
  });
}

if (options.has("selftest")) {
  const say = (text) => {
    document.documentElement.dataset.selftest = text;
    console.info(`page selftest ${text}`);
  };
  addEventListener("load", () => selfTest().then(say, (error) => say(`failed: ${error.message}`)));
}
