// Ids of items that are derived from others.
import { createHash } from "node:crypto";

const MAX_ID_BYTES = 256;

/**
 * Returns the id of a follow-up of an item: `<id>/<step>`, the same whenever the item runs again, so that it is added once. If that
 * is longer than an id may be, the SHA-256 of the item's id takes its place.
 */
export function derivedId(id: string, step: string | number): string {
  const derived = `${id}/${step}`;
  if (Buffer.byteLength(derived) <= MAX_ID_BYTES) return derived;
  return `${createHash("sha256").update(id).digest("hex")}/${step}`;
}
