// Charts over time, one line per film: free huge pages, free memory, and every number given with the shots.

const CHARTS_MAX = 12;
const PLOT = { left: 54, right: 10, top: 8, bottom: 20 };
const SERIES = [
  ["#14181f", "#e8ebf0", ""], ["#c026d3", "#f0abfc", "7 3"], ["#0e7490", "#67e8f9", "2 3"], ["#a16207", "#fde047", "9 3 2 3"],
  ["#4338ca", "#a5b4fc", "4 2"], ["#9f1239", "#fda4af", "12 4"], ["#3f6212", "#bef264", "1 3"],
];

const seriesStyle = (number) => {
  const [light, dark, dashes] = SERIES[number % SERIES.length];
  return { color: `light-dark(${light}, ${dark})`, dashes };
};

// Makes a sample of a film's line, for use as its key.
function lineKey(number) {
  const { color, dashes } = seriesStyle(number);
  const key = shape("svg", { class: "key", viewBox: "0 0 24 10", "aria-hidden": "true" });
  key.style.setProperty("--series", color);
  key.append(shape("line", { x1: 0, y1: 5, x2: 24, y2: 5, "stroke-dasharray": dashes }));
  return key;
}

// Returns the charts that can be drawn: each has a title, and for each shot of a film a value (or null) and its text.
function chartable(films) {
  const pages = (film, count) => bytes(count * film.frame_bytes);
  const found = [
    { title: "Huge pages free", value: (shot) => shot.free_huge, text: (shot) => whole(shot.free_huge), tick: round },
    { title: "Free memory", value: (shot, film) => shot.counts[FREE] * film.frame_bytes, text: (shot, film) => pages(film, shot.counts[FREE]), tick: bytes },
  ];
  const names = new Set(films.flatMap((film) => film.shots.flatMap((shot) => shot.numbers.map(([name]) => name))));
  for (const name of names) {
    const textOf = (shot) => shot.numbers.find(([known]) => known === name)?.[1];
    const value = (shot) => { const text = textOf(shot); return text === undefined ? null : quantity(text)?.value ?? null; };
    const values = films.flatMap((film) => film.shots.map(value)).filter((value) => value !== null);
    // A number that never changes is shown below the pictures, and needs no chart.
    if (new Set(values).size > 1) found.push({ title: name, value, text: (shot) => textOf(shot) ?? "", tick: round });
  }
  return found.slice(0, CHARTS_MAX);
}

// Returns a round number at or above this one, for the top of a chart.
function ceiling(value) {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map((step) => step * power).find((step) => step >= value * (1 - 1e-9));
}

// Does the same for bytes, with powers of two.
const byteCeiling = (value) => {
  const unit = 1024 ** Math.max(0, Math.floor(Math.log(Math.max(1, value)) / Math.log(1024)));
  return 2 ** Math.ceil(Math.log2(Math.max(1, value / unit)) - 1e-9) * unit;
};

class Chart {
  constructor(about, films) {
    Object.assign(this, about);
    this.films = films;
    this.values = element("ul", { class: "values" });
    this.lines = shape("svg", { class: "lines", role: "img" });
    this.now = element("div", { class: "now" });
    this.plot = element("div", { class: "plot" }, this.lines, this.now);
    this.figure = element("figure", { class: "chart" }, element("figcaption", {}, this.title), this.values, this.plot);
    this.texts = films.map((film) => {
      const text = element("b");
      const name = films.length > 1 ? [lineKey(film.number), `${film.name} `] : [];
      this.values.append(element("li", {}, ...name, text));
      return text;
    });
  }

  resize() {
    this.width = this.plot.clientWidth;
    this.height = this.plot.clientHeight;
    const all = this.films.flatMap((film) => film.shots.map((shot) => this.value(shot, film))).filter((value) => value !== null);
    const up = this.tick === bytes ? byteCeiling : ceiling;
    const most = Math.max(...spread(all)), least = Math.min(...spread(all));
    this.high = most > 0 ? up(most) : 0;
    this.low = least < 0 ? -up(-least) : 0;
    if (this.high === this.low) this.high = 1;
    this.lines.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
    this.lines.replaceChildren();
    this.drawGrid();
    for (const film of this.films) this.drawLine(film);
    this.dots = this.films.map((film) => {
      const dot = shape("circle", { r: 4 });
      dot.style.setProperty("--series", seriesStyle(film.number).color);
      this.lines.append(dot);
      return dot;
    });
  }

  x(seconds) {
    return PLOT.left + timePart(seconds) * (this.width - PLOT.left - PLOT.right);
  }

  y(value) {
    const room = this.height - PLOT.top - PLOT.bottom;
    return PLOT.top + (this.high - value) / (this.high - this.low) * room;
  }

  drawGrid() {
    for (const part of [0, 0.5, 1]) {
      const value = this.low + (this.high - this.low) * part;
      const y = this.y(value);
      this.lines.append(
        shape("line", { class: "grid", x1: PLOT.left, x2: this.width - PLOT.right, y1: y, y2: y }),
        shape("text", { x: PLOT.left - 6, y: y + 4, "text-anchor": "end" }, this.tick(value)));
    }
    for (const [part, anchor] of [[0, "start"], [0.5, "middle"], [1, "end"]]) {
      const x = PLOT.left + part * (this.width - PLOT.left - PLOT.right);
      this.lines.append(shape("text", { x, y: this.height - 4, "text-anchor": anchor }, duration(lastTime * part)));
    }
  }

  drawLine(film) {
    const { color, dashes } = seriesStyle(film.number);
    let path = "", pen = "M";
    for (const shot of film.shots) {
      const value = this.value(shot, film);
      if (value === null) { pen = "M"; continue; }
      path += `${pen}${this.x(shot.seconds).toFixed(1)} ${this.y(value).toFixed(1)}`;
      pen = "L";
    }
    const line = shape("path", { class: "series", d: path, "stroke-dasharray": dashes });
    line.style.setProperty("--series", color);
    this.lines.append(line);
  }

  show(seconds) {
    this.now.style.left = `${this.x(seconds)}px`;
    const texts = this.films.map((film, i) => {
      const shot = film.shots[film.shotAt(seconds)];
      const value = this.value(shot, film);
      this.dots[i].style.display = value === null ? "none" : "";
      this.dots[i].setAttribute("cx", this.x(Math.min(seconds, shot.seconds)));
      this.dots[i].setAttribute("cy", this.y(value ?? 0));
      this.texts[i].textContent = this.text(shot, film);
      return `${film.name} ${this.text(shot, film)}`;
    });
    this.lines.setAttribute("aria-label", `${this.title} at ${duration(seconds)}: ${texts.join(", ")}`);
  }

  // Returns the time at a horizontal position in the window.
  timeAt(clientX) {
    const bounds = this.plot.getBoundingClientRect();
    return (clientX - bounds.left - PLOT.left) / (this.width - PLOT.left - PLOT.right) * lastTime;
  }
}

// Reduces many values to their greatest and least: the number of arguments of Math.max is limited.
function spread(values) {
  if (values.length < 5000) return values.length ? values : [0];
  return [values.reduce((a, b) => Math.max(a, b)), values.reduce((a, b) => Math.min(a, b))];
}
