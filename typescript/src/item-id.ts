// Ids of items that a client makes: random ones, and those that are derived from others.
import { createHash, randomUUID } from "node:crypto";

const MAX_ID_BYTES = 256;

/** A random id. `randomUUID` draws random bytes for many ids at a time, which costs a tenth. */
export const randomId = (): string => randomUUID().replaceAll("-", "");

/**
 * Returns the id of a follow-up of an item: `<id>/<step>`, the same whenever the item runs again, so that it is added once. If that
 * is longer than an id may be, the SHA-256 of the item's id takes its place.
 */
export function derivedId(id: string, step: string | number): string {
  const derived = `${id}/${step}`;
  if (Buffer.byteLength(derived) <= MAX_ID_BYTES) return derived;
  return `${createHash("sha256").update(id).digest("hex")}/${step}`;
}
