// Values as bytes, in JSON or MessagePack (LQ-JOB-1, LQ-JOB-17). envelope.ts uses it.
import { decode, encode } from "@msgpack/msgpack";
import type { Argument } from "../encoding.js";
import { BadEnvelopeError, SerializationError } from "./errors.js";

/** How jobs and results are written. */
export type Format = "json" | "msgpack";

const OPENING_BRACE = 0x7b;

/** The format of data (LQ-JOB-17). */
export const formatOf = (data: Uint8Array): Format => (data[0] === OPENING_BRACE ? "json" : "msgpack");

/** Writes a value whose parts were checked by `checkValue`. */
export function write(value: unknown, format: Format): Argument {
  if (format === "json") return JSON.stringify(value);
  // The library writes other integers above 32 bits as floats then.
  const integers = (part: unknown) =>
    typeof part === "number" && Number.isSafeInteger(part) && Math.abs(part) >= 2 ** 31 ? BigInt(part) : part;
  return Buffer.from(encode(replaced(value, integers), { useBigInt64: true, ignoreUndefined: true }));
}

/** Reads a value. Throws BadEnvelopeError. */
export function read(data: Uint8Array): unknown {
  try {
    if (formatOf(data) === "msgpack") return readMessagePack(data);
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(data);
    refuseRounding(text);
    return JSON.parse(text);
  } catch (error) {
    throw new BadEnvelopeError(`it cannot be read: ${(error as Error).message}`);
  }
}

function readMessagePack(data: Uint8Array): unknown {
  const mapKeyConverter = (key: unknown) => {
    if (typeof key === "string") return key;
    throw new TypeError(`a map has the key ${String(key)}, which is no text`);
  };
  const bytes = Uint8Array.from(data); // of a Buffer it would make Buffers
  // Those 64-bit integers that a number holds exactly become numbers.
  const numbers = (part: unknown) =>
    typeof part === "bigint" && Number.isSafeInteger(Number(part)) ? Number(part) : part;
  return replaced(decode(bytes, { useBigInt64: true, mapKeyConverter }), numbers);
}

/** A copy of a value: what the caller changes afterwards is not sent (LQ-CLIENT-26). Bytes are not copied. */
export const copied = <Value>(value: Value): Value => replaced(value, (part) => part) as Value;

/** A copy of a value, with its parts replaced that are neither arrays nor plain objects. */
function replaced(value: unknown, replace: (part: unknown) => unknown): unknown {
  if (Array.isArray(value)) return value.map((part) => replaced(part, replace));
  if (!isMap(value)) return replace(value);
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, replaced(part, replace)]));
}

/** Throws if JSON has an integer that `JSON.parse` would round. */
function refuseRounding(text: string): void {
  if (!/\d{16}/.test(text)) return;
  for (const [digits] of text.matchAll(/"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?/g)) {
    if (/^-?\d{16,}$/.test(digits) && !Number.isSafeInteger(Number(digits))) {
      throw new RangeError(`JavaScript has no exact number ${digits}: send it as text`);
    }
  }
}

/** Whether it is a plain object. */
export function isMap(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null) return false;
  const prototype = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/**
 * Throws SerializationError if the format would write another value, or none (LQ-JOB-60, 61). A member of an object that is
 * undefined counts as missing. `name` is that of the value in the message.
 */
export function checkValue(value: unknown, format: Format, name: string): void {
  try {
    checkPart(value, format, name);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new SerializationError(`${name} contains itself, or has too many levels`); // the stack is full
  }
}

function checkPart(value: unknown, format: Format, name: string): void {
  const problem = problemOf(value, format);
  if (problem)
    throw new SerializationError(
      `${name} is ${problem}, which ${FORMAT_NAMES[format]} cannot hold: ${REMEDIES[format]}`,
    );
  if (Array.isArray(value)) {
    // a hole is undefined here
    for (let index = 0; index < value.length; index += 1)
      checkPart(value[index], format, `${name}[${index}]`);
  } else if (isMap(value)) {
    for (const [key, part] of Object.entries(value)) {
      if (part === undefined) continue;
      if (!key.isWellFormed()) throw new SerializationError(`${name} has a key with a lone surrogate`);
      checkPart(part, format, `${name}.${key}`);
    }
  }
}

const FORMAT_NAMES = { json: "JSON", msgpack: "MessagePack" };
const REMEDIES = {
  json: 'send it as text, a number or a plain object; the App\'s format "msgpack" takes dates, bytes, bigints and NaN',
  msgpack: "send it as text, a number or a plain object",
};
const MIN_INT64 = -(2n ** 63n);
const MAX_UINT64 = 2n ** 64n - 1n;

/** What is wrong with a value itself, without its parts. */
function problemOf(value: unknown, format: Format): string | undefined {
  const isJson = format === "json";
  switch (typeof value) {
    case "boolean":
      return undefined;
    case "string":
      return value.isWellFormed() ? undefined : "text with a lone surrogate";
    case "number":
      return isJson ? problemOfNumber(value) : undefined;
    case "bigint":
      return !isJson && value >= MIN_INT64 && value <= MAX_UINT64 ? undefined : "a bigint";
    case "object":
      if (value === null || Array.isArray(value) || isMap(value)) return undefined;
      if (!isJson && (value instanceof Uint8Array || value instanceof Date)) return undefined;
      return `an object of class ${value.constructor?.name || "without a name"}`;
    default:
      return typeof value;
  }
}

/** JSON's numbers from 2^53 on are read as integers by other languages, with other last digits. */
function problemOfNumber(value: number): string | undefined {
  if (!Number.isFinite(value)) return String(value);
  return Number.isInteger(value) && !Number.isSafeInteger(value) ? "an integer beyond 2^53" : undefined;
}
