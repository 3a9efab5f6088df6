// Verify the proof files of a log with @sigstore/verify: the signature of the checkpoint, and the path from the entry to
// its root. `... DIRECTORY KEY`, as verify.go.

const { createPublicKey } = require("node:crypto");
const { existsSync, readdirSync, readFileSync } = require("node:fs");
const { join } = require("node:path");
const { verifyCheckpoint } = require("@sigstore/verify/dist/tlog/checkpoint");
const { verifyMerkleInclusion } = require("@sigstore/verify/dist/tlog/merkle");

const [directory, vkey] = process.argv.slice(-2);

function trustedLog() {
  const [, name, keyId, content] = vkey.match(/^([^+]+)\+([^+]+)\+(.+)$/);
  const key = Buffer.from(content, "base64").subarray(1).toString("base64url");
  const publicKey = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x: key }, format: "jwk" });
  return { baseURL: name, logID: Buffer.from(keyId, "hex"), publicKey };
}

const threeDigits = (number) => String(number % 1000).padStart(3, "0");

// The entry with this index. Its bundle is full, or as wide as the size of the tree says.
function entryAt(index, size) {
  const number = Math.floor(index / 256);
  const parts = [threeDigits(number)];
  for (let rest = Math.floor(number / 1000); rest > 0; rest = Math.floor(rest / 1000)) parts.unshift(`x${threeDigits(rest)}`);
  const path = join(directory, "tile", "entries", ...parts);
  const content = readFileSync(existsSync(path) ? path : `${path}.p/${size % 256}`);
  let at = 0;
  for (let count = index % 256; count > 0; count--) at += 2 + content.readUInt16BE(at);
  return content.subarray(at + 2, at + 2 + content.readUInt16BE(at));
}

function verifyProof(text, log) {
  const [proof] = text.split("\n\n", 1);
  const [index, ...hashes] = proof.split("\n").slice(1).filter((line) => !line.startsWith("extra "));
  const inclusionProof = {
    logIndex: index.slice("index ".length),
    hashes: hashes.map((hash) => Buffer.from(hash, "base64")),
    checkpoint: { envelope: text.slice(proof.length + 2) },
  };
  const checkpoint = verifyCheckpoint({ inclusionProof }, [log]);
  const canonicalizedBody = entryAt(Number(inclusionProof.logIndex), Number(checkpoint.logSize));
  verifyMerkleInclusion({ inclusionProof, canonicalizedBody }, checkpoint);
}

try {
  const proofs = join(directory, "proofs");
  for (const name of readdirSync(proofs)) verifyProof(readFileSync(join(proofs, name), "utf-8"), trustedLog());
} catch (error) {
  if (error.code !== "TLOG_INCLUSION_PROOF_ERROR") throw error;
  console.log(`refused: ${error.message}`);
  process.exit(3);
}
