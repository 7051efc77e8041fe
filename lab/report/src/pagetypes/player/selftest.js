// With #selftest the page tries itself out, and says how it went on the console and in the attribute data-selftest of
// its root element.

async function selfTest() {
  const must = (holds, what) => { if (!holds) throw new Error(what); };
  const frames = (count) => new Promise((done) => {
    const next = () => (count-- > 0 ? requestAnimationFrame(next) : done());
    next();
  });

  // Every shot decodes to what was written, from the first to the last and from afar.
  let decodeMs = 0;
  for (const film of films) {
    film.kept.clear();
    for (let i = 0; i < film.shots.length; i += 1) {
      const start = performance.now();
      const row = await film.row(i);
      decodeMs += performance.now() - start;
      must(checksum(row) === film.shots[i].checksum, `shot ${i} of film ${film.number} decodes to something else`);
      if (film.scale === 0) {
        const counts = new Array(KINDS.length).fill(0);
        for (let cell = 0; cell < film.cells; cell += 1) counts[cellOf(row, cell)] += 1;
        must(String(counts) === String(film.shots[i].counts), `the counts of shot ${i} of film ${film.number} are others`);
      }
    }
  }
  let farMs = 0;
  for (const film of films) {
    for (const i of [film.shots.length - 1, 0, film.shots.length >> 1]) {
      film.kept.clear();
      const start = performance.now();
      await film.row(i);
      farMs = Math.max(farMs, performance.now() - start);
      must(checksum(await film.row(i)) === film.shots[i].checksum, `shot ${i} of film ${film.number} from afar`);
    }
  }

  // Names are text, whatever they hold.
  for (const picture of pictures) must(picture.card.querySelector("h2").textContent === picture.film.name, "a name is text");

  // The source image shows the cells at their places.
  await want(times.length - 1);
  for (const picture of pictures) {
    const colors = palette();
    const pixels = new Uint32Array(picture.source.getContext("2d").getImageData(0, 0, picture.source.width, picture.source.height).data.buffer);
    for (const zone of picture.geometry.zones) {
      for (const inZone of [0, zone.cells >> 1, zone.cells - 1]) {
        const place = picture.geometry.place(zone.number, inZone);
        const back = picture.geometry.at(place.x, place.y);
        must(back?.cell === place.cell, "a cell is found where it lies");
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
    must(clock.shown === 1, "the right arrow steps");
    byId("scrub").value = times.length - 1;
    byId("scrub").dispatchEvent(new Event("input"));
    await showWanted();
    must(clock.shown === times.length - 1, "the slider goes to the end");
    must(byId("scrub").getAttribute("aria-valuetext").includes(` of ${times.length}`), "the slider says where it is");
    films.forEach((film, i) => must(pictures[i].shot === film.shotAt(lastTime), "all films are in step"));
    // Played from the end, the film starts anew.
    clock.rate = lastTime / 2;
    byId("play").click();
    must(byId("play").getAttribute("aria-label") === "Pause", "the button says what it does");
    await frames(2);
    await showWanted();
    const soon = clock.shown;
    for (let i = 0; i < 2000 && clock.playing; i += 1) await frames(1);
    await showWanted();
    must(soon < times.length - 1, "it plays from the start");
    must(clock.shown === times.length - 1 && !clock.playing, `it plays to the end, not to moment ${clock.shown} of ${times.length}`);
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
  must(picture.probeText.textContent.includes(`zone ${place.zone.name}, box ${whole(place.box)}`), "pointing says zone and box");
  must(picture.probeText.textContent.includes(KINDS[cellOf(picture.row, place.cell) & 7].name), "pointing says the kind");
  pointer("pointerleave", 0, 0);
  must(probe === null, "leaving forgets");
  picture.canvas.dispatchEvent(new WheelEvent("wheel", { deltaY: -400, clientX: x, clientY: y, bubbles: true, cancelable: true }));
  must(view.zoom > 1, "the wheel zooms");
  // Beside a picture that leaves room, there is nothing to keep in place.
  if (left < 0.01 && top < 0.01) must(picture.pointed(x, y)?.frame === place.frame, "what is under the pointer stays there");
  key("+");
  key("+");
  await frames(2);
  key("ArrowRight", picture.canvas, { shiftKey: true });
  must(probe?.stays, "keys point at pages");
  key("0");
  key("Escape", picture.canvas);
  must(view.zoom === 1 && probe === null, "keys show all and forget");
  for (const [type, id, clientX] of [["down", 1, x], ["down", 2, x + 20], ["move", 2, x + 60]]) {
    picture.canvas.dispatchEvent(new PointerEvent(`pointer${type}`, { pointerId: id, pointerType: "touch", clientX, clientY: y, bubbles: true }));
  }
  must(Math.abs(view.zoom - 3) < 0.01, `two fingers zoom to 3, not ${view.zoom}`);
  for (const id of [1, 2]) picture.canvas.dispatchEvent(new PointerEvent("pointercancel", { pointerId: id, bubbles: true }));
  key("0");
  document.querySelector("#legend button").click();
  must(alone === SHOWN[0], "a kind is shown alone");
  document.querySelector("#legend button").click();
  await frames(2);
  return `ok: ${plural(films.length, "film")}, ${plural(films.reduce((sum, film) => sum + film.shots.length, 0), "shot")}, decoded in ${decodeMs.toFixed(0)} ms, one from afar in at most ${farMs.toFixed(0)} ms`;
}

if (asked.has("selftest")) {
  const say = (text) => {
    document.documentElement.dataset.selftest = text;
    console.info(`selftest ${text}`);
    if (framed) parent.postMessage({ selftest: text }, "*");
  };
  begun.then(selfTest).then(say, (error) => say(`failed: ${error.message}`));
}
