// @ts-check
// What buyers are told. Titles are texts of the merchant: they are cut, and kept apart from the words around them.

const MAX_TITLE_LENGTH = 60;

/** The most variants that one message names. */
const MAX_NAMES = 3;

const INVISIBLE = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]+/g;

const ENGLISH = {
  /** @param {string} name */
  none: (name) => `${name} is sold out.`,
  /** @param {string} name @param {number} most @param {number} quantity */
  few: (name, most, quantity) =>
    `Only ${most} of ${name} ${most === 1 ? 'is' : 'are'} left. Your cart has ${quantity}.`,
  /** @param {string[]} names */
  joined: (names) => listed(names, 'and'),
  /** @param {number} count */
  others: (count) => (count === 1 ? 'one more' : `${count} more`),
  /** @param {string} names @param {string[]} amounts */
  together: (names, amounts) =>
    `There is not enough left for ${names} together. Each by itself, there would be ${listed(amounts, 'or')}.`,
};

/** @type {typeof ENGLISH} */
const GERMAN = {
  none: (name) => `${name} ist ausverkauft.`,
  few: (name, most, quantity) =>
    `Von ${name} ${most === 1 ? 'ist' : 'sind'} nur noch ${most} da. In Ihrem Warenkorb: ${quantity}.`,
  joined: (names) => listed(names, 'und'),
  others: (count) => (count === 1 ? 'ein weiteres' : `${count} weitere`),
  together: (names, amounts) =>
    `Für ${names} zusammen ist nicht mehr genug da. Jeweils allein gäbe es noch ${listed(amounts, 'oder')}.`,
};

/** @param {string} language */
function texts(language) {
  return language === 'DE' ? GERMAN : ENGLISH;
}

/**
 * That there is too little of a variant.
 *
 * @param {string} language
 * @param {{name: string, quantity: number}} variant
 * @param {number} most
 */
export function leftOf(language, variant, most) {
  const {none, few} = texts(language);
  return most === 0 ? none(variant.name) : few(variant.name, most, variant.quantity);
}

/**
 * That variants of one stock are too many together, each of which alone would not be.
 *
 * @param {string} language
 * @param {{name: string, most: number}[]} variants
 */
export function leftOfEach(language, variants) {
  const {together, joined, others} = texts(language);
  const listedVariants = variants.slice(0, MAX_NAMES);
  const names = listedVariants.map(({name}) => name);
  if (variants.length > listedVariants.length) {
    names.push(others(variants.length - listedVariants.length));
  }
  const amounts = listedVariants.map(({name, most}) => `${most} × ${name}`);
  return together(joined(names), amounts);
}

/**
 * How buyers know a variant.
 *
 * @param {{title: string | null, product: {title: string}}} merchandise
 */
export function named({title, product}) {
  const alone = !title || title === 'Default Title';
  return alone ? titleText(product.title) : `${titleText(product.title)} (${titleText(title)})`;
}

/** @param {string} title */
function titleText(title) {
  const letters = [...title.replace(INVISIBLE, ' ').trim()];
  const text =
    letters.length > MAX_TITLE_LENGTH ? `${letters.slice(0, MAX_TITLE_LENGTH - 1).join('')}…` : letters.join('');
  return `\u2068${text}\u2069`;
}

/**
 * @param {string[]} names
 * @param {string} last
 */
function listed(names, last) {
  return names.length < 2 ? names.join() : `${names.slice(0, -1).join(', ')} ${last} ${names[names.length - 1]}`;
}
