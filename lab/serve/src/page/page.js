// The page of a live host: asks the server, by GET and no other, and shows what it answers. The view is
// in the address, so that it can be passed on.

const POLL_MS = 5000;
const POLL_MOST_MS = 60000;
const PATIENCE_MS = 20000;
const SERIES_MS = 60000;

let now = null; // The last answer to api/now.
let answered = 0; // When that came, by this browser's clock.
let ageThen = 0; // How old its figures were then, in milliseconds.
let failures = 0;
let polling = null;
let missing = null; // Why there is no map, if the server said.

// The server answered, but not with what was asked for.
class Refused extends Error {}
// It did not answer, or with something else than JSON.
class Silent extends Error {}

// `told` is given the answer's headers.
async function ask(path, told) {
  let answer;
  let body;
  try {
    answer = await fetch(path, { signal: AbortSignal.timeout(PATIENCE_MS) });
    body = await answer.json();
  } catch (error) {
    throw new Silent(String(error));
  }
  if (!answer.ok) throw new Refused(body.error || `status ${answer.status}`);
  told?.(answer.headers);
  return body;
}

async function poll() {
  clearTimeout(polling);
  if (document.hidden) return;
  try {
    let date = NaN;
    const newer = await ask("api/now", (headers) => { date = Date.parse(headers.get("date") ?? ""); });
    const isFirst = now === null;
    const hasNewMap = newer.frames?.time_ms !== now?.frames?.time_ms;
    now = newer;
    answered = Date.now();
    // By the server's clock: this browser's may be wrong.
    ageThen = Number.isNaN(date) ? 0 : Math.max(0, date - newer.time_ms);
    failures = 0;
    byId("trouble").hidden = true;
    document.body.classList.remove("stale");
    // The service answers, but what it reads has failed.
    const failed = now.withheld?.find(({ source }) => source.startsWith("lists"));
    if (failed) showTrouble(new Refused(`${failed.source}: ${failed.why}`));
    addNow();
    showNow();
    if (chosen === null ? hasNewMap : isFirst) await loadMap();
    // A long span costs the service more to read, and changes less.
    const pause = Math.max(SERIES_MS, Number(byId("span").value) / 500);
    if (!series || Date.now() - series.asked > pause) await loadSeries();
  } catch (error) {
    failures += 1;
    showTrouble(error);
  }
  tellAge();
  clearTimeout(polling);
  polling = setTimeout(poll, Math.min(POLL_MOST_MS, POLL_MS * 2 ** Math.min(failures, 10)));
}

// Loads the map of the time that is shown, if there is one.
async function loadMap() {
  const at = chosen;
  let map = null;
  missing = null;
  // Without root there are no maps in the history either.
  if (now.frames || (at !== null && series?.maps.length !== 0)) {
    try {
      map = await ask(at === null ? "api/map" : `api/map?time=${Math.round(at)}`);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      missing = error.message;
    }
  }
  if (at !== chosen) return;
  setMap(map);
  showNothing();
  schedule();
}

let trouble = "";

function showTrouble(error) {
  const isSilent = error instanceof Silent;
  if (isSilent) trouble = "The service does not answer.";
  else if (error instanceof Refused) trouble = `The service answers: ${error.message}.`;
  else {
    trouble = `This page failed: ${error.message}.`;
    console.error(error);
  }
  document.body.classList.toggle("stale", isSilent && now !== null);
  byId("trouble").hidden = false;
  tellAge();
}

// Says how old what is shown is, every second.
function tellAge() {
  if (now) {
    const age = ageThen + Date.now() - answered;
    const pages = now.frames ? `, pages ${ageText(age + now.time_ms - now.frames.time_ms)} old` : "";
    setText("about", `Linux ${now.kernel} · Brickyard ${now.version} · lists ${ageText(age)} old${pages}`);
  }
  if (byId("trouble").hidden) return;
  const old = now && (failures > 0 || document.body.classList.contains("stale")) ? ` What is shown is ${ageText(ageThen + Date.now() - answered)} old.` : "";
  setText("trouble", trouble + old);
}

// ---- drawing, once a frame of the screen

let isDrawing = false;
function schedule() {
  if (isDrawing || !now) return;
  isDrawing = true;
  requestAnimationFrame(() => {
    isDrawing = false;
    drawMap();
    drawTime();
    tellHeadline();
    keepHash();
  });
}

// ---- the view in the address

let ownHash = "";
let keeping = null;

function keepHash() {
  clearTimeout(keeping);
  keeping = setTimeout(() => {
    const parts = [];
    if (picture && view) {
      const { frame, across } = middle();
      parts.push(`frame=${frame}`, `across=${Math.max(1, Math.round(across))}`);
    }
    if (chosen !== null) parts.push(`time=${Math.round(chosen)}`);
    const hash = parts.length === 0 ? "" : `#${parts.join("&")}`;
    // Another address than the page's own is a link that was just followed.
    if (hash === ownHash || location.hash !== ownHash) return;
    ownHash = hash;
    history.replaceState(null, "", hash === "" ? location.pathname + location.search : hash);
  }, 150);
}

function readHash() {
  if (location.hash === ownHash) return;
  ownHash = location.hash;
  const parts = new URLSearchParams(location.hash.slice(1));
  const number = (name) => {
    const value = /^\d{1,16}$/.test(parts.get(name) ?? "") ? Number(parts.get(name)) : NaN;
    return Number.isSafeInteger(value) ? value : null;
  };
  const [frame, across, time] = [number("frame"), number("across"), number("time")];
  view = null;
  asked = frame !== null && across > 0 ? { frame, across } : null;
  chosen = time;
  if (now) choose(time);
}

watchMap();
watchTime();
addEventListener("resize", () => {
  if (picture) {
    const keeps = view ? middle() : null;
    cursor = null;
    arrange();
    if (keeps) lookAt(keeps.frame, keeps.across);
  }
  schedule();
});
addEventListener("hashchange", readHash);
dark.addEventListener("change", () => {
  repaint();
  if (now) showNow();
});
document.addEventListener("visibilitychange", () => { if (!document.hidden) poll(); });
setInterval(() => { if (!document.hidden) tellAge(); }, 1000);
readHash();
poll();
