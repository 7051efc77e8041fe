// The pages that are shown one by one: asked for where they are shown, three requests at a time, and
// kept until a newer pass over the frames or until too many others came.

const PART = 8192;
const ASKED_MOST = 65536;
const REQUESTS_MOST = 3;
const PARTS_MOST = 256;
const PAUSE_MS = 90;
const REST_MS = 5000;

class Frames {
  // `changed` is called when there is more to show, `failed` with an error.
  constructor(changed, failed) {
    this.changed = changed;
    this.failed = failed;
    this.parts = new Map();
    this.asked = new Set();
    this.wanted = [];
    this.running = 0;
    this.soon = null;
    this.rests = 0;
  }

  // Returns a part of the newest pass that was loaded, or undefined.
  part(number) {
    return this.parts.get(number);
  }

  // Returns the name of a frame's use, or null if it was not loaded.
  use(frame) {
    const part = this.parts.get(Math.floor(frame / PART));
    return part ? part.uses[part.codes[frame % PART]] ?? null : null;
  }

  get isLoading() {
    return this.asked.size > 0 || this.wanted.length > 0;
  }

  // These parts are shown now, of a pass that ended at this time: no others are asked for.
  want(numbers, time) {
    this.wanted = numbers.filter((number) => {
      const part = this.parts.get(number);
      if (part) {
        // The last used is the last to go.
        this.parts.delete(number);
        this.parts.set(number, part);
      }
      return !(part && part.time >= time) && !this.asked.has(number);
    });
    clearTimeout(this.soon);
    const pause = Math.max(PAUSE_MS, this.rests - Date.now());
    if (this.wanted.length > 0) this.soon = setTimeout(() => this.ask(), pause);
  }

  ask() {
    while (this.wanted.length > 0 && this.running < REQUESTS_MOST && Date.now() >= this.rests) {
      const numbers = [this.wanted.shift()];
      while (this.wanted[0] === numbers[numbers.length - 1] + 1 && numbers.length < ASKED_MOST / PART) {
        numbers.push(this.wanted.shift());
      }
      this.load(numbers);
    }
  }

  async load(numbers) {
    numbers.forEach((number) => this.asked.add(number));
    this.running += 1;
    try {
      const first = numbers[0] * PART;
      const answer = await ask(`api/frames?first=${first}&count=${numbers.length * PART}`);
      numbers.forEach((number, at) => this.keep(number, answer, at * PART));
    } catch (error) {
      // They are asked for again later.
      this.rests = Date.now() + REST_MS;
      this.failed(error);
    } finally {
      numbers.forEach((number) => this.asked.delete(number));
      this.running -= 1;
    }
    this.changed();
    this.ask();
  }

  keep(number, { frames, uses, time_ms: time }, from) {
    const codes = new Uint8Array(PART);
    for (let at = 0; at < PART && from + at < frames.length; at += 1) codes[at] = frames.charCodeAt(from + at) - 65;
    this.parts.delete(number);
    this.parts.set(number, { codes, uses, time, picture: null });
    for (const oldest of this.parts.keys()) {
      if (this.parts.size <= PARTS_MOST) break;
      this.parts.delete(oldest);
    }
  }

  // Colours have changed.
  repaint() {
    for (const part of this.parts.values()) part.picture = null;
  }
}

// Returns a part as a picture of a pixel a page: its blocks one below the other.
function pictureOf(part, width) {
  if (part.picture) return part.picture;
  const canvas = document.createElement("canvas");
  canvas.width = width;
  canvas.height = PART / width;
  const context = canvas.getContext("2d");
  const image = context.createImageData(canvas.width, canvas.height);
  const pixels = new Uint32Array(image.data.buffer);
  const colours = part.uses.map((name) => pixelOf(name, entryOf(USES, name)));
  for (let at = 0; at < PART; at += 1) pixels[at] = colours[part.codes[at]];
  context.putImageData(image, 0, 0);
  part.picture = canvas;
  return canvas;
}
