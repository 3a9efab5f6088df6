const uint64 = (number) => new Uint8Array(new BigUint64Array([BigInt(number)]).buffer).reverse();
const chars = (text) => Uint8Array.from(text, (char) => char.charCodeAt());
const hex = (digits) => Uint8Array.from(digits.match(/../g), (pair) => parseInt(pair, 16));
const sha256 = async (parts) => new Uint8Array(await crypto.subtle.digest("SHA-256", Uint8Array.from(parts.flatMap((part) => [...part]))));
const drawnOrder = async (origin, entries, root, chain, round, signature) => {
  const parts = [chars("holdfast/draw/v1\n"), chars(origin), uint64(entries), chars(atob(root)), hex(chain), uint64(round), hex(signature)];
  const [seed, keyed] = [await sha256(parts.flatMap((part) => [uint64(part.length), part])), []];
  for (let ticket = 1; ticket <= entries; ticket++) keyed.push([String.fromCharCode(...(await sha256([seed, uint64(ticket)]))), ticket]);
  return keyed.sort(([one], [other]) => (one < other ? -1 : 1)).map(([, ticket]) => ticket); // the first is let in first
};
