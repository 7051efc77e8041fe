// The positions of cells in a picture. Lengths here are in cells; boxes are one cell apart.

// Returns the number of boxes per row that uses the space best; multiples of 8, 4 or 2 are slightly preferred.
function columnsFor(film, width, height) {
  const [across, down] = boxSize(film);
  const aim = Math.sqrt(film.boxes * (width / height) * (down + 1) / (across + 1));
  let best = { score: 0, columns: 1 };
  for (const step of [1, 2, 4, 8, 16]) {
    for (const way of [Math.floor, Math.ceil]) {
      const columns = Math.min(film.boxes, Math.max(1, way(aim / step) * step));
      const rows = Math.ceil(film.boxes / columns);
      const size = Math.min(width / (columns * (across + 1) + 1), height / (rows * (down + 1) + 1));
      const score = size * (columns % 8 === 0 ? 1.08 : columns % 4 === 0 ? 1.05 : columns % 2 === 0 ? 1.02 : 1);
      if (score > best.score) best = { score, columns };
    }
  }
  return best.columns;
}

function boxSize(film) {
  const order = film.box_order - film.scale;
  return [2 ** Math.ceil(order / 2), 2 ** Math.floor(order / 2)];
}

class Geometry {
  constructor(film, columns) {
    [this.across, this.down] = boxSize(film);
    this.film = film;
    this.columns = columns;
    this.width = columns * (this.across + 1) + 1;
    this.height = Math.ceil(film.boxes / columns) * (this.down + 1) + 1;
    let box = 0, cell = 0;
    this.zones = film.zones.map((zone, number) => {
      const first = { ...zone, number, firstBox: box, firstCell: cell };
      box += zone.boxes;
      cell += zone.cells;
      return first;
    });
  }

  boxAt(box) {
    const row = Math.floor(box / this.columns);
    return [box % this.columns * (this.across + 1) + 1, row * (this.down + 1) + 1];
  }

  // Returns the cell at this position, with its zone and box, or null.
  at(x, y) {
    const [left, top] = [Math.floor(x) - 1, Math.floor(y) - 1];
    const [column, row] = [Math.floor(left / (this.across + 1)), Math.floor(top / (this.down + 1))];
    const [inX, inY] = [left - column * (this.across + 1), top - row * (this.down + 1)];
    if (column < 0 || row < 0 || column >= this.columns || inX >= this.across || inY >= this.down) return null;
    const box = row * this.columns + column;
    const zone = this.zones.find((zone) => box >= zone.firstBox && box < zone.firstBox + zone.boxes);
    if (!zone) return null;
    const cell = (box - zone.firstBox) * this.across * this.down + inY * this.across + inX - zone.lead;
    return cell >= 0 && cell < zone.cells ? this.place(zone.number, cell) : null;
  }

  // Returns cell number inZone of a zone, with its box, first frame and position.
  place(zoneNumber, inZone) {
    const zone = this.zones[zoneNumber];
    const pages = 2 ** this.film.scale;
    const boxCells = this.across * this.down;
    const box = zone.firstBox + Math.floor((inZone + zone.lead) / boxCells);
    const frame = Math.max(zone.start, (Math.floor(zone.start / pages) + inZone) * pages);
    const [left, top] = this.boxAt(box);
    const within = (inZone + zone.lead) % boxCells;
    const y = Math.floor(within / this.across);
    return { zone, inZone, cell: zone.firstCell + inZone, box, frame, x: left + within - y * this.across, y: top + y };
  }

  // Returns the cell that shows this frame, or null. Zones may overlap: the named zone is preferred.
  find(frame, zoneName) {
    const holds = (zone) => frame >= zone.start && frame < zone.start + zone.frames;
    const zone = this.zones.find((zone) => holds(zone) && zone.name === zoneName) ?? this.zones.find(holds);
    if (!zone) return null;
    const pages = 2 ** this.film.scale;
    return this.place(zone.number, Math.floor(frame / pages) - Math.floor(zone.start / pages));
  }

  // Returns the first cell of a box, and the one after its last.
  cellsOf(box) {
    const zone = this.zones.find((zone) => box >= zone.firstBox && box < zone.firstBox + zone.boxes);
    const boxCells = this.across * this.down;
    const from = (box - zone.firstBox) * boxCells - zone.lead;
    return [zone.firstCell + Math.max(0, from), zone.firstCell + Math.min(zone.cells, from + boxCells)];
  }

  // Calls each(cell, x, y, length) for every run of cells side by side.
  rows(each) {
    for (const zone of this.zones) {
      let inZone = 0;
      while (inZone < zone.cells) {
        const { cell, x, y } = this.place(zone.number, inZone);
        const length = Math.min(this.across - (inZone + zone.lead) % this.across, zone.cells - inZone);
        each(cell, x, y, length);
        inZone += length;
      }
    }
  }
}
