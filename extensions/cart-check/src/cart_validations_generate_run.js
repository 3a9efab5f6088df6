// @ts-check
// Stops a cart before it is paid if its lines together take more of a pool than can be sold.
//
// What a variant takes is in its metafield, which the service writes:
//   {"v": 17, "until": "2026-11-29", "pools": [[4, 6, 44]]}
// At version 17 of the shop, one sale of it took 6 units of pool 4, of which 44 could be sold. After the day `until`, the
// numbers say nothing: then the service has not been there for a week. Pools that may go below zero are not in it.
// A variant without numbers, or with numbers that cannot be read, stops nothing.

import {leftOf, leftOfEach, named} from './texts.js';

/** The most messages at once. */
const MAX_MESSAGES = 5;

/**
 * @typedef {[id: number, units: number, sellable: number]} Draw
 * @typedef {{v: number, until: string, pools: Draw[]}} Numbers
 * @typedef {{name: string, quantity: number, numbers: Numbers}} Variant
 * @typedef {{drawn: number, sellable: number, v: number, variants: Variant[]}} Pool
 */

/** @param {any} input */
export function cartValidationsGenerateRun(input) {
  // While somebody fills a cart, nothing is refused: a cart that holds too much could not be made smaller step by step.
  if (input.buyerJourney.step === 'CART_INTERACTION') {
    return {operations: []};
  }
  const messages = shortages(input.cart.lines, input.shop.localTime.date, input.localization.language.isoCode);
  const errors = messages.slice(0, MAX_MESSAGES).map((message) => ({message, target: '$.cart'}));
  return {operations: errors.length ? [{validationAdd: {errors}}] : []};
}

/**
 * What there is too little of, in the buyer's language.
 *
 * @param {any[]} lines
 * @param {string} today
 * @param {string} language
 * @returns {string[]}
 */
function shortages(lines, today, language) {
  const variants = gathered(lines, today);
  const pools = drawn(variants);
  const messages = [];
  const reported = new Set();
  for (const variant of variants) {
    const most = mostOf(variant, pools);
    if (variant.quantity > most) {
      messages.push(leftOf(language, variant, most));
      variant.numbers.pools.forEach(([id]) => reported.add(id));
    }
  }
  for (const [id, pool] of pools) {
    if (pool.drawn > pool.sellable && !reported.has(id)) {
      const limits = pool.variants.map((variant) => ({name: variant.name, most: mostOf(variant, pools)}));
      messages.push(leftOfEach(language, limits));
    }
  }
  return messages;
}

/**
 * The variants of the cart that have numbers, each once, with what all lines want of it.
 *
 * @param {any[]} lines
 * @param {string} today
 * @returns {Variant[]}
 */
function gathered(lines, today) {
  /** @type {Map<string, Variant>} */
  const variants = new Map();
  for (const {quantity, merchandise} of lines) {
    const numbers = merchandise.__typename === 'ProductVariant' ? read(merchandise.numbers?.jsonValue, today) : null;
    if (numbers === null) {
      continue;
    }
    const variant = variants.get(merchandise.id);
    if (variant) {
      variant.quantity += quantity;
    } else {
      variants.set(merchandise.id, {name: named(merchandise), quantity, numbers});
    }
  }
  return [...variants.values()];
}

/**
 * The pools that variants draw on. The variants may have been written at different versions: the newest is right.
 *
 * @param {Variant[]} variants
 * @returns {Map<number, Pool>}
 */
function drawn(variants) {
  /** @type {Map<number, Pool>} */
  const pools = new Map();
  for (const variant of variants) {
    const {v} = variant.numbers;
    for (const [id, units, sellable] of variant.numbers.pools) {
      const pool = pools.get(id) ?? {drawn: 0, sellable, v, variants: []};
      pool.drawn += variant.quantity * units;
      pool.variants.push(variant);
      if (v > pool.v) {
        pool.sellable = sellable;
        pool.v = v;
      }
      pools.set(id, pool);
    }
  }
  return pools;
}

/**
 * How many of a variant a cart could hold that holds nothing else.
 *
 * @param {Variant} variant
 * @param {Map<number, Pool>} pools
 */
function mostOf(variant, pools) {
  let most = Infinity;
  for (const [id, units] of variant.numbers.pools) {
    most = Math.min(most, Math.floor(/** @type {Pool} */ (pools.get(id)).sellable / units));
  }
  return Math.max(most, 0);
}

/**
 * The numbers in a metafield; null if there are none, or they are too old, or are not as they should be.
 *
 * @param {any} value
 * @param {string} today
 * @returns {Numbers | null}
 */
function read(value, today) {
  const isValid =
    value !== null &&
    typeof value === 'object' &&
    Number.isSafeInteger(value.v) &&
    typeof value.until === 'string' &&
    value.until >= today &&
    Array.isArray(value.pools) &&
    value.pools.every(isDraw);
  return isValid ? value : null;
}

/** @param {any} draw */
function isDraw(draw) {
  return Array.isArray(draw) && draw.length === 3 && draw.every(Number.isSafeInteger) && draw[1] > 0;
}
