// Where QR codes may be in a picture: what is dark in it, the three finder patterns, and how they lie to each other.
"use strict";
{
  const BLOCK = 8;
  const LEAST_CONTRAST = 16; // of 256: less is a plain surface, whatever the picture
  const SMALLEST = 11; // pixels that a finder pattern is wide
  const MANY = 200; // as many as in noise are not looked at
  const FINDERS = 12; // the best ones of each colour are put together to groups...
  const GROUPS = 16; // ... of which the best are read

  // A picture in grey: bright pixels are 255.
  function greyOf({ data, width, height }) {
    const grey = new Uint8Array(width * height);
    for (let i = 0, at = 0; i < grey.length; i++, at += 4) {
      grey[i] = (77 * data[at] + 151 * data[at + 1] + 28 * data[at + 2]) >> 8;
    }
    return { grey, width, height };
  }

  // The same picture at half its size. Noise is half as strong in it.
  function halved({ grey, width, height }) {
    const [columns, rows] = [width >> 1, height >> 1];
    const half = new Uint8Array(columns * rows);
    for (let row = 0, to = 0; row < rows; row++) {
      for (let column = 0, at = 2 * row * width; column < columns; column++, at += 2) {
        half[to++] = (grey[at] + grey[at + 1] + grey[at + width] + grey[at + width + 1] + 2) >> 2;
      }
    }
    return { grey: half, width: columns, height: rows };
  }

  // How much lighter each pixel is than what parts light and dark around it, in sixteenths: below 0 it is dark.
  function lightOf({ grey, width, height }) {
    const [columns, rows] = [Math.ceil(width / BLOCK), Math.ceil(height / BLOCK)];
    const limits = thresholds(grey, width, height, columns, rows);
    const light = new Int16Array(grey.length);
    const line = new Float32Array(columns + 2);
    for (let y = 0; y < height; y++) {
      // Between the centers of blocks, the limit changes evenly.
      const down = Math.min(Math.max((y + 0.5) / BLOCK - 0.5, 0), rows - 1);
      const [upper, part] = [Math.floor(down) * columns, down % 1];
      const lower = part ? upper + columns : upper;
      for (let x = 0; x < columns; x++) line[x + 1] = limits[upper + x] * (1 - part) + limits[lower + x] * part;
      line[0] = line[1];
      line[columns + 1] = line[columns];
      for (let x = 0, at = y * width; x < width; x++, at++) {
        const right = (x + 0.5) / BLOCK + 0.5;
        const left = right | 0;
        light[at] = 16 * (grey[at] - line[left] - (line[left + 1] - line[left]) * (right - left));
      }
    }
    return { light, width, height };
  }

  // For each block, the middle between the darkest and the lightest in the smallest surroundings that have contrast.
  function thresholds(grey, width, height, columns, rows) {
    let low = new Uint8Array(columns * rows).fill(255);
    let high = new Uint8Array(columns * rows);
    let [darkest, lightest] = [255, 0];
    for (let y = 0; y + 1 < height; y += 2) {
      for (let x = 0, at = y * width; x + 1 < width; x += 2, at += 2) {
        const mean = (grey[at] + grey[at + 1] + grey[at + width] + grey[at + width + 1]) >> 2;
        const block = (y >> 3) * columns + (x >> 3);
        if (mean < low[block]) low[block] = mean;
        if (mean > high[block]) high[block] = mean;
      }
    }
    for (let i = 0; i < low.length; i++) {
      if (low[i] < darkest) darkest = low[i];
      if (high[i] > lightest) lightest = high[i];
    }
    const enough = Math.max(LEAST_CONTRAST, (lightest - darkest) * 0.3);
    const limits = new Float32Array(low.length).fill(-1);
    for (let reach = 1; reach < Math.max(columns, rows); reach *= 2) {
      low = spread(low, columns, rows, reach, Math.min);
      high = spread(high, columns, rows, reach, Math.max);
      let open = 0;
      for (let i = 0; i < limits.length; i++) {
        if (limits[i] >= 0) continue;
        if (high[i] - low[i] >= enough) limits[i] = (high[i] + low[i]) / 2;
        else open++;
      }
      if (!open) break;
    }
    return smooth(limits, columns, rows);
  }

  // The least or most of each block and its neighbours at a distance.
  function spread(values, columns, rows, reach, most) {
    const along = new Uint8Array(values.length);
    const result = new Uint8Array(values.length);
    for (let row = 0, i = 0; row < rows; row++) {
      for (let column = 0; column < columns; column++, i++) {
        const left = column < reach ? i - column : i - reach;
        const right = column + reach < columns ? i + reach : i - column + columns - 1;
        along[i] = most(values[i], values[left], values[right]);
      }
    }
    for (let row = 0, i = 0; row < rows; row++) {
      for (let column = 0; column < columns; column++, i++) {
        const above = row < reach ? column : i - reach * columns;
        const below = row + reach < rows ? i + reach * columns : (rows - 1) * columns + column;
        result[i] = most(along[i], along[above], along[below]);
      }
    }
    return result;
  }

  // Each limit as the mean of itself and its neighbours.
  function smooth(limits, columns, rows) {
    const result = new Float32Array(limits.length);
    for (let row = 0, i = 0; row < rows; row++) {
      for (let column = 0; column < columns; column++, i++) {
        let sum = 0, count = 0;
        for (let r = Math.max(row - 1, 0); r <= Math.min(row + 1, rows - 1); r++) {
          for (let c = Math.max(column - 1, 0); c <= Math.min(column + 1, columns - 1); c++) {
            sum += limits[r * columns + c];
            count++;
          }
        }
        result[i] = sum / count;
      }
    }
    return result;
  }

  // Whether five runs are those through the middle of a finder pattern: 1, 1, 3, 1 and 1 modules, half of one more or
  // less. Small ones are off by more, since pixels are whole.
  function isFinder(a, b, c, d, e) {
    const total = a + b + c + d + e;
    const module = total / 7;
    const off = module * 0.5 + 0.6;
    return (
      Math.abs(a - module) < off && Math.abs(b - module) < off && Math.abs(d - module) < off &&
      Math.abs(e - module) < off && Math.abs(c - 3 * module) < 1.5 * off
    );
  }

  // From the middle of a pattern one way: where the runs of its colour, the other, and its colour end, in steps. The
  // last run may end with the picture.
  function ends({ light, width, height }, x, y, dx, dy, dark, most) {
    const steps = [];
    for (let step = 1; step <= most; step++) {
      const [column, row] = [x + step * dx, y + step * dy];
      const inside = column >= 0 && row >= 0 && column < width && row < height;
      const same = inside && light[row * width + column] < 0 === dark;
      if (inside && same === (steps.length % 2 === 0)) continue;
      if (!inside && steps.length < 2) return null;
      if (steps.push(step) === 3) return steps;
    }
    return null;
  }

  // The finder pattern around a point, if its runs are right up and down, to both sides, and along a diagonal. In a
  // code that is tilted, the other diagonal may miss the middle.
  function finderAt(picture, x, y, dark, extent) {
    const across = (cx, cy, dx, dy) => {
      const most = Math.ceil(extent * 1.5) + 2;
      const forth = ends(picture, cx, cy, dx, dy, dark, most);
      const back = forth && ends(picture, cx, cy, -dx, -dy, dark, most);
      if (!back) return null;
      const [a, b, c] = back, [d, e, f] = forth;
      if (!isFinder(c - b, b - a, a + d - 1, e - d, f - e)) return null;
      return { total: c + f - 1, off: (d - a) / 2 };
    };
    const down = across(x, y, 0, 1);
    if (!down) return null;
    const cy = y + down.off;
    const along = across(x, Math.round(cy), 1, 0);
    if (!along) return null;
    const cx = x + along.off;
    const [left, top] = [Math.round(cx), Math.round(cy)];
    const diagonals = [across(left, top, 1, 1), across(left, top, 1, -1)].filter(Boolean);
    if (!diagonals.length) return null;
    const size = Math.min(down.total, along.total, ...diagonals.map((diagonal) => diagonal.total * Math.SQRT2));
    return { x: cx + 0.5, y: cy + 0.5, module: size / 7 };
  }

  // The finder patterns of a picture, dark ones and light ones (of codes that are light on dark), best first.
  function findersOf(picture) {
    const { light, width, height } = picture;
    const byColour = { true: [], false: [] };
    const starts = new Int32Array(width + 2);
    for (let y = 0; y < height; y++) {
      let count = 0;
      const first = light[y * width] < 0;
      let before = first;
      for (let x = 0, at = y * width; x < width; x++, at++) {
        const dark = light[at] < 0;
        if (dark !== before) starts[++count] = x;
        before = dark;
      }
      starts[++count] = width;
      for (let i = 0; i + 5 <= count; i++) {
        const [a, b, c] = [starts[i], starts[i + 1], starts[i + 2]];
        const [d, e, f] = [starts[i + 3], starts[i + 4], starts[i + 5]];
        if (f - a < SMALLEST || !isFinder(b - a, c - b, d - c, e - d, f - e)) continue;
        const dark = first === (i % 2 === 0);
        const pattern = finderAt(picture, (c + d - 1) >> 1, y, dark, f - a);
        if (pattern) remember(byColour[dark], pattern);
      }
    }
    const best = (patterns) =>
      patterns.filter((pattern) => pattern.count > 1).sort((a, b) => b.count - a.count).slice(0, FINDERS);
    return [best(byColour.true), best(byColour.false)];
  }

  // A pattern is met in many rows.
  function remember(patterns, { x, y, module }) {
    const known = patterns.find((pattern) => Math.hypot(pattern.x - x, pattern.y - y) < 2 * pattern.module);
    if (!known) {
      if (patterns.length < MANY) patterns.push({ x, y, module, count: 1 });
      return;
    }
    const share = 1 / ++known.count;
    known.x += (x - known.x) * share;
    known.y += (y - known.y) * share;
    known.module += (module - known.module) * share;
  }

  // The size of a module of a pattern along a line, in pixels. The pattern is seven modules wide.
  function moduleAlong({ light, width, height }, { x, y, module }, dx, dy, dark) {
    const arm = (sign) => {
      let changes = 0;
      for (let way = 0; way < 8 * module; way += 0.25) {
        const [column, row] = [Math.floor(x + sign * way * dx), Math.floor(y + sign * way * dy)];
        const inside = column >= 0 && row >= 0 && column < width && row < height;
        const same = inside && light[row * width + column] < 0 === dark;
        if (same !== (changes % 2 === 0) && ++changes === 3) return way;
      }
      return 3.5 * module;
    };
    return (arm(1) + arm(-1)) / 7;
  }

  // Three patterns as the corner of a code and the ends of its upper and left side, or null if they cannot be that.
  function grouped(picture, patterns, dark) {
    const apart = ([a, b]) => Math.hypot(a.x - b.x, a.y - b.y);
    const [first, second, third] = patterns;
    const [, corner, right, down] = [
      [apart([second, third]), first, second, third],
      [apart([first, third]), second, first, third],
      [apart([first, second]), third, first, second],
    ].reduce((best, candidate) => (candidate[0] > best[0] ? candidate : best));
    const sizes = patterns.map((pattern) => pattern.module);
    if (Math.max(...sizes) > 2.5 * Math.min(...sizes)) return null;
    const side = (end) => {
      const length = apart([corner, end]);
      const [dx, dy] = [(end.x - corner.x) / length, (end.y - corner.y) / length];
      const [near, far] = [corner, end].map((point) => moduleAlong(picture, point, dx, dy, dark));
      // How much farther from the eye its end is, and its length in modules.
      return { dx, dy, depth: Math.sqrt(near / far), modules: length / Math.sqrt(near * far) };
    };
    const [upper, left] = [side(right), side(down)];
    const turn = upper.dx * left.dy - upper.dy * left.dx;
    const uneven = Math.abs(Math.log(upper.modules / left.modules));
    if (Math.abs(turn) < 0.5 || uneven > 0.4) return null;
    const modules = (upper.modules + left.modules) / 2;
    if (modules < 12 || modules > 80) return null;
    const ends = [{ ...right, depth: upper.depth }, { ...down, depth: left.depth }];
    if (turn < 0) ends.reverse();
    return {
      corner: { ...corner, depth: 1 }, right: ends[0], down: ends[1], modules, dark, doubt: uneven + 1 - Math.abs(turn),
    };
  }

  // The groups of three finder patterns that may be codes, best first.
  function groupsOf(picture) {
    const groups = [];
    const [darkOnes, lightOnes] = findersOf(picture);
    for (const [patterns, dark] of [[darkOnes, true], [lightOnes, false]]) {
      for (let i = 2; i < patterns.length; i++) {
        for (let j = 1; j < i; j++) {
          for (let k = 0; k < j; k++) groups.push(grouped(picture, [patterns[k], patterns[j], patterns[i]], dark));
        }
      }
    }
    return groups.filter(Boolean).sort((a, b) => a.doubt - b.doubt).slice(0, GROUPS);
  }

  globalThis.qrFind = { greyOf, halved, lightOf, groupsOf };
}
