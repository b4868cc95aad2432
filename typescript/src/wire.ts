// How values look on the wire, both ways.
import { BadArgumentError, BadIdError } from "./errors.js";

/** Bytes that go in: a string stands for its UTF-8. What comes out is a Buffer, never decoded unasked. */
export type Bytes = string | Uint8Array;

/** One word of a command. */
export type Word = string | Buffer;

export function id(value: Bytes): Buffer {
  // Lone surrogates would all become U+FFFD, and different ids one.
  if (typeof value === "string" && !value.isWellFormed()) throw new BadIdError("the id has a lone surrogate");
  return bytes(value, "an id");
}

export function bytes(value: Bytes, what: string): Buffer {
  if (typeof value === "string") return Buffer.from(value);
  if (value instanceof Uint8Array) return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  throw new BadArgumentError(`${what} is a string or a Uint8Array, not ${typeof value}`);
}

/** Ranges are for the scripts to check; here only what has no decimal digits is refused. */
export function integer(value: number, what: string): string {
  if (!Number.isInteger(value)) throw new BadArgumentError(`${what} is a whole number, not ${String(value)}`);
  return BigInt(value).toString();
}

/** The nearest whole millisecond (LQ-CALL-12). */
export function milliseconds(value: number, what: string): string {
  return integer(typeof value === "number" ? Math.round(value) : value, what);
}

/** The same of a time of which 0 has a meaning of its own, which a short one must not get. */
export function millisecondsKept(value: number, what: string): string {
  const words = milliseconds(value, what);
  if (words === "0" && value !== 0) throw new BadArgumentError(`${what} is shorter than a millisecond`);
  return words;
}

/** `wait` of a reply, µs, in milliseconds; -1 (for nothing) as Infinity. */
export function waitInMilliseconds(microseconds: number): number {
  return microseconds < 0 ? Number.POSITIVE_INFINITY : microseconds / 1000;
}

/** Steps through a flat reply. */
export class Reader {
  #at = 0;
  readonly #elements: readonly unknown[];

  constructor(reply: unknown) {
    this.#elements = reply as readonly unknown[];
  }

  get left(): number {
    return this.#elements.length - this.#at;
  }

  number(): number {
    return this.#elements[this.#at++] as number;
  }

  bytes(): Buffer {
    return this.#elements[this.#at++] as Buffer;
  }

  text(): string {
    return this.bytes().toString();
  }

  times<T>(count: number, read: (reader: this) => T): T[] {
    return Array.from({ length: count }, () => read(this));
  }
}
