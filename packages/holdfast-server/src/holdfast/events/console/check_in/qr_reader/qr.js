// Reads a QR code in a picture of a camera: `readQr({data, width, height})` is its text, or null.
//
// This script needs `qr_text.js` and `qr_find.js` before it, in a page or in a worker.
"use strict";
{
  const { DATA, INFORMATION, NEWEST, layoutOf, textOfQr } = qrText;
  const { greyOf, halved, lightOf, groupsOf } = qrFind;
  const SMALLEST = 160; // pixels of the shorter side of the smallest picture that is looked at
  const ALIKE = 0.8; // the share of the modules known beforehand that have to be as they should
  const BLURS = [0, 0.25]; // how much of the light of a module each of its neighbours may have got
  // A point, x or y of it, and where to: the fourth point first, which is known least.
  const MOVES = [3, 2, 1, 0].flatMap((point) => [0, 1].flatMap((axis) => [1, -1].map((move) => [point, axis, move])));

  // The text of the QR code in a picture, or null: what cannot be read for certain is no code. It throws nothing.
  //
  // The picture is RGBA, as `getImageData` of a canvas returns it. Codes may be turned, tilted, mirrored, and light on
  // dark. They have 77 modules a side at most (version 15), and a module has two pixels a side at least. All three
  // finder patterns have to be in the picture. If several codes are, the text of one is returned.
  function readQr(picture) {
    const sizes = [greyOf(picture)];
    while (Math.min(sizes[0].width, sizes[0].height) >= 2 * SMALLEST) sizes.unshift(halved(sizes[0]));
    for (const grey of sizes) {
      const light = lightOf(grey);
      let negative;
      for (const group of groupsOf(light)) {
        const seen = group.dark ? light : (negative ??= { ...light, light: light.light.map((value) => -value) });
        const text = readGroup(seen, group);
        if (text) return text;
      }
    }
    return null;
  }

  // The text of the code whose finder patterns these are, or null. From here on, codes are dark on light.
  function readGroup(picture, group) {
    const guess = (group.modules - 10) / 4;
    const nearest = Math.round(guess);
    const other = guess > nearest ? 1 : -1;
    for (const version of [nearest, nearest + other, nearest - other]) {
      if (version < 1 || version > NEWEST) continue;
      const transform = fitted(picture, group, version);
      const text = transform && readModules(sampled(picture, transform, version), version);
      if (text) return text;
    }
    return null;
  }

  // The text of modules, of which is given how light they are: as they are, in a mirror, and less blurred.
  function readModules(light, version) {
    for (const blur of BLURS) {
      const modules = sharpened(light, blur).map((value) => (value < 0 ? 1 : 0));
      const text = textOfQr(version, modules) ?? textOfQr(version, transposed(modules));
      if (text) return text;
    }
    return null;
  }

  // A transform takes places of a code, in modules, to those of the picture, in pixels. It is a matrix, row by row, for
  // places with a third coordinate. Four places and where they go say which: the middles of the finder patterns, and
  // the middle of the last alignment pattern. (Version 1 has none. The same place serves.)
  function anchorsOf(size) {
    const far = size - 3.5;
    return [[3.5, 3.5], [far, 3.5], [3.5, far], [far - 3, far - 3]];
  }

  // The matrix that takes the three unit vectors and their sum to four points.
  function basis([[a, d], [b, e], [c, f], [x, y]]) {
    const [p, q, r] = apply(adjugate([a, b, c, d, e, f, 1, 1, 1]), x, y, 1);
    return [a * p, b * q, c * r, d * p, e * q, f * r, p, q, r];
  }

  // The inverse of a matrix, times its determinant: a factor means nothing here.
  function adjugate([a, b, c, d, e, f, g, h, i]) {
    return [
      e * i - f * h, c * h - b * i, b * f - c * e,
      f * g - d * i, a * i - c * g, c * d - a * f,
      d * h - e * g, b * g - a * h, a * e - b * d,
    ];
  }

  function apply([a, b, c, d, e, f, g, h, i], x, y, z) {
    return [a * x + b * y + c * z, d * x + e * y + f * z, g * x + h * y + i * z];
  }

  function product(m, n) {
    const column = (i) => apply(m, n[i], n[i + 3], n[i + 6]);
    const [[a, d, g], [b, e, h], [c, f, i]] = [column(0), column(1), column(2)];
    return [a, b, c, d, e, f, g, h, i];
  }

  // What is known of a version beforehand: the modules that are the same in all its codes, and its anchors.
  const knowledge = [];
  function known(version) {
    return (knowledge[version] ??= learned(version));
  }

  function learned(version) {
    const size = 17 + 4 * version;
    const cells = [];
    layoutOf(version).forEach((kind, i) => {
      if (kind !== DATA && kind !== INFORMATION) cells.push([(i % size) + 0.5, Math.floor(i / size) + 0.5, -kind]);
    });
    const outer = (place) => place < 8 || place > size - 8;
    const end = (place) => Math.abs(place - size + 6.5) <= 2;
    return {
      size,
      all: spots(cells, [0]),
      // A few large modules say where they are by their edges.
      edges: spots(cells, version < 7 ? [-0.35, 0.35] : [0]),
      finders: spots(cells.filter(([x, y]) => outer(x) && outer(y)), [0]),
      last: version > 1 ? spots(cells.filter(([x, y]) => end(x) && end(y)), [0]) : [],
      fromCode: adjugate(basis(anchorsOf(size))),
    };
  }

  // Places in cells, as one list of x, y, and 1 for light or -1 for dark.
  function spots(cells, shifts) {
    return Float32Array.from(cells.flatMap(([x, y, kind]) =>
      shifts.flatMap((right) => shifts.flatMap((down) => [x + right, y + down, kind]))));
  }

  // How light a picture is at a place, between the middles of pixels too. Outside, it is neither light nor dark.
  function lightAt({ light, width, height }, x, y) {
    const left = Math.floor(x - 0.5), top = Math.floor(y - 0.5);
    if (!(left >= 0 && top >= 0 && left + 1 < width && top + 1 < height)) return 0;
    const right = x - 0.5 - left, down = y - 0.5 - top;
    const at = top * width + left;
    const upper = light[at] + (light[at + 1] - light[at]) * right;
    const lower = light[at + width] + (light[at + width + 1] - light[at + width]) * right;
    return upper + (lower - upper) * down;
  }

  // How light a picture is at a place of the code.
  function lightUnder(picture, m, x, y) {
    const w = m[6] * x + m[7] * y + m[8];
    return lightAt(picture, (m[0] * x + m[1] * y + m[2]) / w, (m[3] * x + m[4] * y + m[5]) / w);
  }

  // How well a picture agrees with what is known: the sum of how far each place is on its side.
  function agreement(picture, m, places) {
    let sum = 0;
    for (let i = 0; i < places.length; i += 3) sum += places[i + 2] * lightUnder(picture, m, places[i], places[i + 1]);
    return sum;
  }

  // Whether nearly all of the places are on their side.
  function agrees(picture, m, places) {
    let right = 0;
    for (let i = 0; i < places.length; i += 3) {
      if (places[i + 2] * lightUnder(picture, m, places[i], places[i + 1]) > 0) right++;
    }
    return 3 * right >= ALIKE * places.length;
  }

  // The transform from a code to the picture, or null if what is known of the version is not there.
  function fitted(picture, group, version) {
    const { size, all, edges, finders, last, fromCode } = known(version);
    const transform = (points) => product(basis(points), fromCode);
    const score = (points, places) => agreement(picture, transform(points), places);
    const points = [...[group.corner, group.right, group.down].map(({ x, y }) => [x, y]), fourth(group, size)];
    if (!agrees(picture, transform(points), finders)) return null;
    const module = (group.corner.module + group.right.module + group.down.module) / 3;
    if (last.length) {
      // An alignment pattern is small. Where something is most like it, all others have to be in their places too.
      const likely = around(points[3], module, size).map((point) => [...points.slice(0, 3), point]);
      points[3] = best(best(likely, (four) => score(four, last), 24), (four) => score(four, all), 1)[0][3];
    }
    climb(points, (candidate) => score(candidate, edges), module);
    const transformed = transform(points);
    return agrees(picture, transformed, all) ? transformed : null;
  }

  // Where the fourth anchor is, as the finder patterns lie. A transform yields the product of a place and its depth,
  // which is linear. The depth of the corner is 1, and modules say that of the ends: the farther, the smaller.
  function fourth({ corner, right, down }, size) {
    const part = (size - 10) / (size - 7);
    const mixed = (of) => of(corner) * (1 - 2 * part) + (of(right) + of(down)) * part;
    const depth = mixed((finder) => finder.depth);
    return [mixed((finder) => finder.x * finder.depth) / depth, mixed((finder) => finder.y * finder.depth) / depth];
  }

  // Points in the surroundings of one, half a module from each other.
  function around([x, y], module, size) {
    const reach = Math.ceil(Math.max(6, size / 4));
    const shifts = Array.from({ length: 2 * reach + 1 }, (_, i) => ((i - reach) * module) / 2);
    return shifts.flatMap((down) => shifts.map((right) => [x + right, y + down]));
  }

  // The few with the highest scores.
  function best(all, score, count) {
    const scored = all.map((candidate) => [score(candidate), candidate]);
    return scored.sort((a, b) => b[0] - a[0]).slice(0, count).map(([, candidate]) => candidate);
  }

  // Moves points as long as the score rises, in steps that get smaller.
  function climb(points, score, module) {
    let highest = score(points);
    for (let step = 0.8 * module; step > 0.08 * module; step /= 2) {
      for (let round = 0, higher = true; higher && round < 3; round++) {
        higher = false;
        for (const [i, axis, move] of MOVES) {
          points[i][axis] += move * step;
          const reached = score(points);
          if (reached > highest) [highest, higher] = [reached, true];
          else points[i][axis] -= move * step;
        }
      }
    }
  }

  // How light the modules of a code are in the picture: below 0 they are dark.
  function sampled(picture, m, version) {
    const size = 17 + 4 * version;
    const modules = new Float32Array(size * size);
    for (let row = 0, i = 0; row < size; row++) {
      for (let column = 0; column < size; column++, i++) {
        for (let down = 0.25; down < 1; down += 0.25) {
          for (let right = 0.25; right < 1; right += 0.25) {
            modules[i] += lightUnder(picture, m, column + right, row + down);
          }
        }
      }
    }
    return modules;
  }

  // Modules without what a blurred picture has mixed in of their neighbours.
  function sharpened(light, blur) {
    const size = Math.sqrt(light.length);
    return light.map((value, i) => {
      const [left, right] = [i % size ? light[i - 1] : 0, (i + 1) % size ? light[i + 1] : 0];
      return value - blur * (left + right + (light[i - size] ?? 0) + (light[i + size] ?? 0));
    });
  }

  // The same modules in a mirror.
  function transposed(modules) {
    const size = Math.sqrt(modules.length);
    return modules.map((_, i) => modules[(i % size) * size + Math.floor(i / size)]);
  }

  globalThis.readQr = readQr;
}
