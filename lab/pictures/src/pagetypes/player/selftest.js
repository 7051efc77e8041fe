// With #selftest the page tests itself, and reports the outcome on the console and in the attribute data-selftest of
// its root element.

async function selfTest() {
  const must = (condition, message) => { if (!condition) throw new Error(message); };
  const frames = (count) => new Promise((done) => {
    const next = () => (count-- > 0 ? requestAnimationFrame(next) : done());
    next();
  });

  // Every shot decodes to what was written, in order and by random access (invariant `same-cells`).
  let decodeMs = 0;
  for (const film of films) {
    film.kept.clear();
    for (let i = 0; i < film.shots.length; i += 1) {
      const start = performance.now();
      const row = await film.row(i);
      decodeMs += performance.now() - start;
      must(checksum(row) === film.shots[i].checksum, `shot ${i} of film ${film.number} decodes correctly`);
      if (film.scale === 0) {
        const counts = new Array(KINDS.length).fill(0);
        for (let cell = 0; cell < film.cells; cell += 1) counts[cellOf(row, cell)] += 1;
        must(String(counts) === String(film.shots[i].counts), `the counts of shot ${i} of film ${film.number} are right`);
      }
    }
  }
  let randomMs = 0;
  for (const film of films) {
    for (const i of [film.shots.length - 1, 0, film.shots.length >> 1]) {
      film.kept.clear();
      const start = performance.now();
      await film.row(i);
      randomMs = Math.max(randomMs, performance.now() - start);
      must(checksum(await film.row(i)) === film.shots[i].checksum, `shot ${i} of film ${film.number} decodes correctly by random access`);
    }
  }

  // Names are inserted as text.
  for (const picture of pictures) must(picture.card.querySelector("h2").textContent === picture.film.name, "a name is text");

  // The source image shows each cell at its position.
  await want(times.length - 1);
  for (const picture of pictures) {
    const colors = palette();
    const pixels = new Uint32Array(picture.source.getContext("2d").getImageData(0, 0, picture.source.width, picture.source.height).data.buffer);
    for (const zone of picture.geometry.zones) {
      for (const inZone of [0, zone.cells >> 1, zone.cells - 1]) {
        const place = picture.geometry.place(zone.number, inZone);
        const back = picture.geometry.at(place.x, place.y);
        must(back?.cell === place.cell, "a cell is found at its position");
        must(pixels[place.y * picture.source.width + place.x] === colors[cellOf(picture.row, place.cell)], "a cell has its colour");
      }
    }
  }

  // Steps, scrubbing, keys.
  const key = (key, target = document.body, more = {}) => target.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...more }));
  key("Home");
  await showWanted();
  must(clock.shown === 0 && pictures[0].shot === 0, "Home goes to the first shot");
  if (times.length > 1) {
    key("ArrowRight");
    await showWanted();
    must(clock.shown === 1, "the right arrow steps forward");
    byId("scrub").value = times.length - 1;
    byId("scrub").dispatchEvent(new Event("input"));
    await showWanted();
    must(clock.shown === times.length - 1, "the slider goes to the end");
    must(byId("scrub").getAttribute("aria-valuetext").includes(` of ${times.length}`), "the slider's text has its position");
    films.forEach((film, i) => must(pictures[i].shot === film.shotAt(lastTime), "all films are in step"));
    // Played at the end, the film starts again.
    clock.rate = lastTime / 2;
    byId("play").click();
    must(byId("play").getAttribute("aria-label") === "Pause", "the button's label is its action");
    await frames(2);
    await showWanted();
    const soon = clock.shown;
    for (let i = 0; i < 2000 && clock.playing; i += 1) await frames(1);
    await showWanted();
    must(soon < times.length - 1, "it plays from the start");
    must(clock.shown === times.length - 1 && !clock.playing, `it plays to the end, not to time ${clock.shown + 1} of ${times.length}`);
  }

  // Pointing and zooming, on all pictures at once.
  const picture = pictures[pictures.length - 1];
  const pointer = (type, clientX, clientY) => picture.canvas.dispatchEvent(
    new PointerEvent(type, { pointerId: 7, pointerType: "mouse", clientX, clientY, bubbles: true }));
  const bounds = picture.canvas.getBoundingClientRect();
  const { size, left, top } = picture.placing;
  const place = picture.geometry.place(0, Math.min(3, picture.geometry.zones[0].cells - 1));
  const [x, y] = [bounds.left + (left + (place.x + 0.5) * size) / picture.ratio, bounds.top + (top + (place.y + 0.5) * size) / picture.ratio];
  pointer("pointermove", x, y);
  must(probe?.frame === place.frame, "pointing finds the page");
  must(picture.probeText.textContent.includes(`zone ${place.zone.name}, box ${whole(place.box)}`), "pointing shows zone and box");
  must(picture.probeText.textContent.includes(KINDS[cellOf(picture.row, place.cell) & 7].name), "pointing shows the kind");
  pointer("pointerleave", 0, 0);
  must(probe === null, "leaving the picture clears the probe");
  picture.canvas.dispatchEvent(new WheelEvent("wheel", { deltaY: -400, clientX: x, clientY: y, bubbles: true, cancelable: true }));
  must(view.zoom > 1, "the wheel zooms");
  // A picture smaller than its canvas is centred, so its cells may move.
  if (left < 0.01 && top < 0.01) must(picture.pointed(x, y)?.frame === place.frame, "what is under the pointer stays there");
  key("+");
  key("+");
  await frames(2);
  key("ArrowRight", picture.canvas, { shiftKey: true });
  must(probe?.pinned, "keys set the probe");
  key("0");
  key("Escape", picture.canvas);
  must(view.zoom === 1 && probe === null, "keys show the whole picture and clear the probe");
  for (const [type, id, clientX] of [["down", 1, x], ["down", 2, x + 20], ["move", 2, x + 60]]) {
    picture.canvas.dispatchEvent(new PointerEvent(`pointer${type}`, { pointerId: id, pointerType: "touch", clientX, clientY: y, bubbles: true }));
  }
  must(Math.abs(view.zoom - 3) < 0.01, `two fingers zoom to 3, not ${view.zoom}`);
  for (const id of [1, 2]) picture.canvas.dispatchEvent(new PointerEvent("pointercancel", { pointerId: id, bubbles: true }));
  key("0");
  document.querySelector("#legend button").click();
  must(highlighted === SHOWN[0], "a kind is highlighted");
  document.querySelector("#legend button").click();
  await frames(2);
  return `ok: ${plural(films.length, "film")}, ${plural(films.reduce((sum, film) => sum + film.shots.length, 0), "shot")}, decoded in ${decodeMs.toFixed(0)} ms, random access in at most ${randomMs.toFixed(0)} ms`;
}

if (options.has("selftest")) {
  const report = (text) => {
    document.documentElement.dataset.selftest = text;
    console.info(`selftest ${text}`);
    if (framed) parent.postMessage({ selftest: text }, "*");
  };
  begun.then(selfTest).then(report, (error) => report(`failed: ${error.message}`));
}
