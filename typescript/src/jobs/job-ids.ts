// Ids that are made of a function and its arguments: the same in every program and language (spec/jobs.md, Ids made of arguments).
import { createHash } from "node:crypto";
import type { Arguments } from "./arguments.js";
import { SerializationError } from "./errors.js";
import { isMap } from "./format.js";

/** Hexadecimal digits of the SHA-256 that an id has. */
const DIGITS = 32;

/** The digest of a call. Throws SerializationError for arguments that JSON does not have. */
export function digestOf(called: string, { args, kwargs }: Arguments): string {
  const text = canonical([called, args, kwargs], called);
  return createHash("sha256").update(text).digest("hex").slice(0, DIGITS);
}

export const uniqueId = (digest: string): string => `unique-${digest}`;

/** The id of a throttled job in the slot of a time. `length` and `now` in ms. */
export const slotId = (digest: string, length: number, now: number): string =>
  `throttle-${digest}-${length}-${Math.floor(now / length)}`;

/** JSON as RFC 8785 writes it: `JSON.stringify` with sorted members. A bigint has all its digits, as in Python. */
export function canonical(value: unknown, called: string): string {
  switch (typeof value) {
    case "boolean":
      return String(value);
    case "bigint":
      return value.toString();
    case "number":
      if (Number.isFinite(value)) return JSON.stringify(value);
      break;
    case "string":
      if (value.isWellFormed()) return JSON.stringify(value);
      break;
    default:
      if (value === null) return "null";
      if (Array.isArray(value)) return `[${value.map((part) => canonical(part, called)).join(",")}]`;
      if (isMap(value)) return canonicalMap(value, called);
  }
  throw new SerializationError(
    `the id of a job that is unique or throttled is made of its arguments as JSON, which cannot hold one of a call of ${called}: ` +
      "choose an id yourself, with the option id",
  );
}

/** `sort` compares UTF-16, as the RFC does. A member that is undefined is not sent. */
function canonicalMap(value: Readonly<Record<string, unknown>>, called: string): string {
  const names = Object.keys(value).filter((name) => value[name] !== undefined);
  const members = names.sort().map((name) => `${canonical(name, called)}:${canonical(value[name], called)}`);
  return `{${members.join(",")}}`;
}
