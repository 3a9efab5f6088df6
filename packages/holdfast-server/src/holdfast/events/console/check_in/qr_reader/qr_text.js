// The text of a QR code, from its modules (ISO/IEC 18004). Versions 1 to 15, all levels and masks.
"use strict";
{
  const NEWEST = 15;
  const DARK = 1, LIGHT = -1, DATA = 0, INFORMATION = 2;

  // For each level, as its two bits say it (M, L, H, Q), and each version from 1: the check words of a block...
  const CHECKS = [
    [10, 16, 26, 18, 24, 16, 18, 22, 22, 26, 30, 22, 22, 24, 24],
    [7, 10, 15, 20, 26, 18, 20, 24, 30, 18, 20, 24, 26, 30, 22],
    [17, 28, 22, 16, 22, 28, 26, 26, 24, 28, 24, 28, 22, 24, 24],
    [13, 22, 18, 26, 18, 24, 18, 22, 20, 24, 28, 26, 24, 20, 30],
  ];
  // ... and the number of blocks.
  const BLOCKS = [
    [1, 1, 1, 2, 2, 4, 4, 4, 5, 5, 5, 8, 9, 9, 10],
    [1, 1, 1, 1, 1, 2, 2, 2, 2, 4, 4, 4, 4, 4, 6],
    [1, 1, 2, 4, 4, 4, 5, 6, 8, 8, 11, 11, 16, 16, 18],
    [1, 1, 2, 2, 4, 4, 6, 6, 8, 8, 8, 10, 12, 16, 12],
  ];

  const MASKS = [
    (row, column) => (row + column) % 2,
    (row) => row % 2,
    (_, column) => column % 3,
    (row, column) => (row + column) % 3,
    (row, column) => ((row >> 1) + Math.floor(column / 3)) % 2,
    (row, column) => ((row * column) % 2) + ((row * column) % 3),
    (row, column) => (((row * column) % 2) + ((row * column) % 3)) % 2,
    (row, column) => (((row + column) % 2) + ((row * column) % 3)) % 2,
  ];

  // What each module of a version is: DARK or LIGHT in every such code, INFORMATION about level and mask, or DATA.
  const layouts = [];
  function layoutOf(version) {
    return (layouts[version] ??= laidOut(version));
  }

  function laidOut(version) {
    const size = 17 + 4 * version;
    const cells = new Int8Array(size * size);
    const rings = (row, column, radius, ...light) => {
      for (let r = Math.max(row - radius, 0); r <= Math.min(row + radius, size - 1); r++) {
        for (let c = Math.max(column - radius, 0); c <= Math.min(column + radius, size - 1); c++) {
          cells[r * size + c] = light.includes(Math.max(Math.abs(r - row), Math.abs(c - column))) ? LIGHT : DARK;
        }
      }
    };
    const inform = (row, column) => (cells[row * size + column] ||= INFORMATION);

    for (let i = 8; i < size - 8; i++) cells[6 * size + i] = cells[i * size + 6] = i % 2 ? LIGHT : DARK;
    const centers = alignmentCenters(version);
    const last = centers.at(-1);
    for (const row of centers) {
      for (const column of centers) {
        const finder = (row === 6 && (column === 6 || column === last)) || (row === last && column === 6);
        if (!finder) rings(row, column, 2, 1);
      }
    }
    for (const [row, column] of [[3, 3], [3, size - 4], [size - 4, 3]]) rings(row, column, 4, 2, 4);
    for (let i = 0; i < 9; i++) {
      inform(8, i), inform(i, 8);
      if (i < 8) inform(8, size - 1 - i), inform(size - 1 - i, 8);
    }
    const bits = version < 7 ? 0 : withChecks(version, 0x1f25, 12);
    for (let i = 0; bits && i < 18; i++) {
      const [near, far] = [Math.floor(i / 3), size - 11 + (i % 3)];
      cells[near * size + far] = cells[far * size + near] = (bits >> i) & 1 ? DARK : LIGHT;
    }
    return cells;
  }

  // The rows and columns of alignment patterns: they are spread evenly, and the odd distance is the first.
  function alignmentCenters(version) {
    if (version === 1) return [];
    const last = 10 + 4 * version;
    const gaps = Math.floor(version / 7) + 1;
    const step = Math.ceil((last - 6) / gaps / 2) * 2;
    return [6, ...Array.from({ length: gaps }, (_, i) => last - (gaps - 1 - i) * step)];
  }

  // A number and its check bits, which are the rest of a division by a polynomial over GF(2).
  function withChecks(number, polynomial, checks) {
    let rest = number << checks;
    while (rest >> checks) rest ^= polynomial << (Math.clz32(polynomial) - Math.clz32(rest));
    return (number << checks) | rest;
  }

  const FORMATS = Array.from({ length: 32 }, (_, format) => withChecks(format, 0x537, 10) ^ 0x5412);

  // The format that differs from what was read in at most three bits, or -1: formats differ in seven from each other.
  function nearestFormat(read) {
    return FORMATS.findIndex((format) => {
      let wrong = 0;
      for (let rest = format ^ read; rest; rest &= rest - 1) wrong++;
      return wrong <= 3;
    });
  }

  // The level and mask, which stand in the code twice. Both are tried if they differ: what is wrong is not correctable.
  function formatsOf(size, modules) {
    const at = (row, column) => modules[row * size + column];
    let first = 0, second = 0;
    for (let i = 14; i >= 0; i--) {
      const along = i < 6 ? i : i < 8 ? i + 1 : 15 - i - (i > 8 ? 1 : 0);
      first = (first << 1) | (i < 8 ? at(along, 8) : at(8, along));
      second = (second << 1) | (i < 8 ? at(8, size - 1 - i) : at(size - 15 + i, 8));
    }
    return new Set([first, second].map(nearestFormat).filter((format) => format >= 0));
  }

  // The codewords, in the order in which they were laid out: in columns of two, up and down in turns, from the right.
  function codewordsOf(size, modules, layout, mask) {
    const words = [];
    let bits = 0, count = 0;
    for (let right = size - 1, up = true; right > 0; right -= 2, up = !up) {
      if (right === 6) right--; // this column is the timing pattern's
      for (let i = 0; i < 2 * size; i++) {
        const row = up ? size - 1 - (i >> 1) : i >> 1;
        const column = right - (i & 1);
        if (layout[row * size + column] !== DATA) continue;
        bits = (bits << 1) | (modules[row * size + column] ^ (mask(row, column) === 0 ? 1 : 0));
        if (++count % 8 === 0) words.push(bits & 255);
      }
    }
    return words;
  }

  // The data of all blocks, corrected, or null. Blocks take turns in the code. The later ones may have one word more.
  function dataOf(words, level, version) {
    const checks = CHECKS[level][version - 1];
    const count = BLOCKS[level][version - 1];
    const short = Math.floor(words.length / count) - checks;
    const fromLong = count - (words.length % count);
    const data = [];
    for (let block = 0; block < count; block++) {
      const read = [];
      for (let i = 0; i < short; i++) read.push(words[i * count + block]);
      if (block >= fromLong) read.push(words[short * count + block - fromLong]);
      const length = read.length;
      for (let i = words.length - checks * count + block; i < words.length; i += count) read.push(words[i]);
      if (!correct(read, checks, correctable(level, version, checks))) return null;
      data.push(...read.slice(0, length));
    }
    return data;
  }

  // Small codes keep some of their checks to notice that there is too much to correct.
  function correctable(level, version, checks) {
    const reserved = { "1-1": 3, "1-2": 2, "1-3": 1, "0-1": 2 }[`${level}-${version}`] ?? 0;
    return (checks - reserved) >> 1;
  }

  // GF(256): powers of 2 modulo x^8 + x^4 + x^3 + x^2 + 1, and their logarithms.
  const POWERS = new Uint8Array(510);
  const LOGARITHMS = new Uint8Array(256);
  for (let i = 0, power = 1; i < 255; i++) {
    POWERS[i] = POWERS[i + 255] = power;
    LOGARITHMS[power] = i;
    power = (power << 1) ^ (power & 128 ? 0x11d : 0);
  }
  const times = (a, b) => (a && b ? POWERS[LOGARITHMS[a] + LOGARITHMS[b]] : 0);
  const over = (a, b) => (a ? POWERS[LOGARITHMS[a] + 255 - LOGARITHMS[b]] : 0);
  const valueAt = (x, coefficients) => coefficients.reduceRight((sum, coefficient) => times(sum, x) ^ coefficient, 0);

  // Corrects a block of the Reed-Solomon code in place. Returns whether it is right now.
  function correct(block, checks, most) {
    const syndromes = Array.from({ length: checks }, (_, i) =>
      block.reduce((sum, word) => times(sum, POWERS[i]) ^ word, 0));
    if (!syndromes.some(Boolean)) return true;
    const locator = locatorOf(syndromes);
    const wrong = locator.length - 1;
    if (wrong > most) return false;
    const evaluator = syndromes.slice(0, wrong).map((_, i) =>
      locator.slice(0, i + 1).reduce((sum, coefficient, j) => sum ^ times(coefficient, syndromes[i - j]), 0));
    // In characteristic 2, the derivative has the odd coefficients only.
    const derivative = locator.slice(1).map((coefficient, i) => (i % 2 ? 0 : coefficient));
    let rootCount = 0;
    for (let place = 0; place < block.length; place++) {
      const power = block.length - 1 - place;
      const inverse = POWERS[255 - power];
      if (valueAt(inverse, locator)) continue;
      block[place] ^= times(POWERS[power], over(valueAt(inverse, evaluator), valueAt(inverse, derivative)));
      rootCount++;
    }
    return rootCount === wrong && rootCount > 0;
  }

  // The shortest polynomial that the syndromes obey (Berlekamp and Massey): its roots are where the errors are.
  function locatorOf(syndromes) {
    let locator = [1], before = [1], length = 0, shift = 1, scale = 1;
    syndromes.forEach((_, n) => {
      const gap = locator.reduce((sum, coefficient, i) => sum ^ times(coefficient, syndromes[n - i] ?? 0), 0);
      if (gap) {
        const factor = over(gap, scale);
        const next = [...locator];
        before.forEach((coefficient, i) => (next[i + shift] = (next[i + shift] ?? 0) ^ times(coefficient, factor)));
        for (let i = 0; i < next.length; i++) next[i] ??= 0;
        if (2 * length <= n) [length, before, scale, shift] = [n + 1 - length, locator, gap, 0];
        locator = next;
      }
      shift++;
    });
    while (locator.length - 1 < length) locator.push(0);
    return locator;
  }

  const ALPHANUMERIC = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ $%*+-./:";
  // The bits of the count, to version 9 and later; the characters of a group; the bits of a group with so many.
  const MODES = { 1: [10, 12, 3, [0, 4, 7, 10]], 2: [9, 11, 2, [0, 6, 11]], 4: [8, 16, 1, [0, 8]] };
  const UTF8 = 26; // among the encodings that a code can name

  // The text that the data are, or null if it is of a kind that is not read: Kanji, other encodings, parts of a series.
  function written(data, version) {
    let at = 0;
    const left = () => 8 * data.length - at;
    const take = (count) => {
      let value = 0;
      for (; count > 0; count--, at++) value = (value << 1) | ((data[at >> 3] >> (7 - (at & 7))) & 1);
      return value;
    };
    const bytes = [];
    const say = (text) => bytes.push(...text.split("").map((letter) => letter.charCodeAt(0)));
    let utf8 = false;
    while (left() >= 4) {
      const mode = take(4);
      if (mode === 0) break;
      if (mode === 7) {
        if (left() < 8 || take(8) !== UTF8) return null;
        utf8 = true;
        continue;
      }
      if (!(mode in MODES)) return null;
      const [small, large, group, bits] = MODES[mode];
      const width = version < 10 ? small : large;
      if (left() < width) return null;
      for (let count = take(width), now; count > 0; count -= now) {
        now = Math.min(count, group);
        if (left() < bits[now]) return null;
        const value = take(bits[now]);
        if (mode === 4) bytes.push(value);
        else if (value >= (mode === 1 ? 10 : 45) ** now) return null;
        else if (mode === 1) say(String(value).padStart(now, "0"));
        else say((now === 2 ? ALPHANUMERIC[Math.floor(value / 45)] : "") + ALPHANUMERIC[value % 45]);
      }
    }
    return decoded(bytes, utf8);
  }

  // Bytes are UTF-8 if they can be, as most programs write them, else ISO 8859-1, which is what the standard says.
  function decoded(bytes, utf8) {
    try {
      return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(Uint8Array.from(bytes));
    } catch {
      return utf8 ? null : bytes.map((byte) => String.fromCharCode(byte)).join("");
    }
  }

  // The text of a code, or null. `modules` are its rows, one after the other: 1 is dark, 0 is light.
  function textOfQr(version, modules) {
    const size = 17 + 4 * version;
    const layout = layoutOf(version);
    for (const format of formatsOf(size, modules)) {
      const data = dataOf(codewordsOf(size, modules, layout, MASKS[format & 7]), format >> 3, version);
      const text = data && written(data, version);
      if (text !== null) return text;
    }
    return null;
  }

  globalThis.qrText = { NEWEST, DATA, INFORMATION, layoutOf, textOfQr };
}
