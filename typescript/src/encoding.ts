// How values are encoded in arguments, and how replies are read. codecs.generated.ts is built of these.
import { BadArgumentError, BadIdError } from "./script-errors.generated.js";

/** Bytes of an argument: a string is sent as UTF-8. Replies have Buffers, which are not decoded. */
export type Bytes = string | Uint8Array;

/** One argument of a Redis command, as it is sent. */
export type Argument = string | Buffer;

/** Longer text is sent as a Buffer: ioredis would make one string of the command, and strings have a limit. */
const MAX_TEXT_CHARS = 16_384;

/** An id. Throws BadIdError. Its length is checked by the scripts. */
export function encodeId(value: Bytes): Argument {
  // Lone surrogates would all become U+FFFD, so that different ids become the same.
  if (typeof value === "string" && !value.isWellFormed()) throw new BadIdError("the id has a lone surrogate");
  return encodeBytes(value, "an id");
}

/**
 * A copy of the bytes: they may be sent later, and be changed by then (LQ-CLIENT-26). Short text stays text, since ioredis writes
 * commands without Buffers faster. `label` names the value in the error. Throws BadArgumentError.
 */
export function encodeBytes(value: Bytes, label: string): Argument {
  if (typeof value === "string") return value.length <= MAX_TEXT_CHARS ? value : Buffer.from(value);
  if (value instanceof Uint8Array) return Buffer.from(value);
  throw new BadArgumentError(`${label} is a string or a Uint8Array, not ${typeof value}`);
}

/** Names and values that are given as pairs or as an object; `label` names them in the error. Throws BadArgumentError. */
export function toPairs(
  given: Iterable<readonly [string, Bytes]> | Readonly<Record<string, Bytes>> | null | undefined,
  label: string,
): (readonly [string, Bytes])[] {
  if (typeof (given ?? {}) === "object") {
    const entries = given ?? [];
    const pairs = Symbol.iterator in entries ? [...entries] : Object.entries(entries);
    if (pairs.every(Array.isArray)) return pairs;
  }
  throw new BadArgumentError(`${label} are an object, or pairs of a name and a value`);
}

/** A whole number as decimal digits. The scripts check its range. Throws BadArgumentError. */
export function encodeInteger(value: number, label: string): string {
  if (!Number.isInteger(value))
    throw new BadArgumentError(`${label} is a whole number, not ${String(value)}`);
  return BigInt(value).toString();
}

/** The nearest whole millisecond (LQ-CALL-12). Throws BadArgumentError. */
export function encodeMilliseconds(value: number, label: string): string {
  return encodeInteger(typeof value === "number" ? Math.round(value) : value, label);
}

/** The milliseconds of `keep`, where 0 has a special meaning: a shorter time than 0.5 ms is refused. Throws BadArgumentError. */
export function encodeKeep(value: number, label: string): string {
  const digits = encodeMilliseconds(value, label);
  if (digits === "0" && value !== 0) throw new BadArgumentError(`${label} is shorter than a millisecond`);
  return digits;
}

/** Arguments, and behind them those of each entry. `flat` takes V8 several times as long. */
export function joined(first: readonly Argument[], entries: readonly Argument[][]): Argument[] {
  return first.concat(...entries);
}

/** The `wait` of a reply, in microseconds, as milliseconds; -1 (nothing is due) as Infinity. */
export function decodeWaitMs(microseconds: number): number {
  return microseconds < 0 ? Number.POSITIVE_INFINITY : microseconds / 1000;
}

/** The reply to one entry is a bare element, the reply to several an array (LQ-CALL-4). */
export function answers(reply: unknown): readonly unknown[] {
  return Array.isArray(reply) ? reply : [reply];
}

/** Reads a flat reply, one element after the other. The caller knows the type of each: nothing is checked. */
export class ReplyReader {
  #position = 0;
  readonly #elements: readonly unknown[];

  constructor(reply: unknown) {
    this.#elements = reply as readonly unknown[];
  }

  /** How many elements were not read yet. */
  get remaining(): number {
    return this.#elements.length - this.#position;
  }

  value(): unknown {
    return this.#elements[this.#position++];
  }

  number(): number {
    return this.#elements[this.#position++] as number;
  }

  bytes(): Buffer {
    return this.#elements[this.#position++] as Buffer;
  }

  text(): string {
    return this.bytes().toString();
  }

  /** Reads `count` records. */
  repeat<T>(count: number, read: (reader: this) => T): T[] {
    return Array.from({ length: count }, () => read(this));
  }
}
