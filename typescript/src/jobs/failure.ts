// The text of a failed attempt (LQ-JOB-9): what a worker writes as the last error, and what a reader finds in it.
import { inspect } from "node:util";
import { textOf } from "../handler.js";
import { MAX_ERROR_BYTES } from "../scripts.generated.js";

/** Of the first line; the rest has the whole message. */
const MAX_MESSAGE_CHARS = 500;
const KIND = /^[\p{L}_$.][\p{L}\p{N}_$.]*$/u;

/** A failure. Times are milliseconds since 1970, undefined if they are not known. */
export interface Failure {
  readonly type: string;
  readonly message: string;
  readonly traceback: string;
  readonly worker: string;
  readonly started: number | undefined;
  readonly refused: number | undefined;
}

/** The lines below the first one. */
interface Facts {
  readonly worker: string;
  readonly started?: number | undefined;
  readonly refused?: number | undefined;
}

/** The text of anything that was thrown. */
export function failureText(error: unknown, facts: Facts): string {
  const kind = error instanceof Error && KIND.test(error.name) ? error.name : "Error";
  const message = error instanceof Error ? String(error.message) : textOf(error);
  return writeFailure(kind, message, error instanceof Error ? tracebackOf(error) : "", facts);
}

/** The text of a failure, cut at its end so that all of it is kept (LQ-JOB-23). */
export function writeFailure(kind: string, message: string, traceback: string, facts: Facts): string {
  const lines = [`${kind}: ${oneLine(message)}`, `worker: ${facts.worker}`];
  for (const name of ["started", "refused"] as const) {
    const time = facts[name];
    if (time !== undefined) lines.push(`${name}: ${new Date(time).toISOString().replace("Z", "+00:00")}`);
  }
  return cut(`${lines.join("\n")}\n\n${traceback}`, MAX_ERROR_BYTES);
}

/** Reads a failure from its text; a text of another form is only a message. */
export function readFailure(text: string): Failure {
  const [head = "", ...rest] = text.split("\n\n");
  const [first = "", ...lines] = head.split("\n");
  const colon = first.indexOf(": ");
  const kind = first.slice(0, Math.max(colon, 0));
  if (!KIND.test(kind)) {
    return { type: "", message: text, traceback: "", worker: "", started: undefined, refused: undefined };
  }
  const fields = new Map(lines.map((line) => [line.split(": ", 1)[0], line.slice(line.indexOf(": ") + 2)]));
  return {
    type: kind,
    message: first.slice(colon + 2),
    traceback: rest.join("\n\n"),
    worker: fields.get("worker") ?? "",
    started: timeOf(fields.get("started")),
    refused: timeOf(fields.get("refused")),
  };
}

function timeOf(text: string | undefined): number | undefined {
  const time = Date.parse(text ?? "");
  return Number.isNaN(time) ? undefined : time;
}

/** The stack of an error and of its causes. */
function tracebackOf(error: Error): string {
  try {
    return inspect(error).toWellFormed();
  } catch {
    return ""; // its properties cannot be read
  }
}

function oneLine(message: string): string {
  const line = message
    .slice(0, 10 * MAX_MESSAGE_CHARS)
    .toWellFormed()
    .split(/\s+/)
    .filter(Boolean)
    .join(" ");
  return line.length <= MAX_MESSAGE_CHARS
    ? line
    : `${line.slice(0, MAX_MESSAGE_CHARS - 3)}...`.toWellFormed();
}

/** Text of at most that many bytes of UTF-8. */
function cut(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= maxBytes) return text;
  let end = maxBytes;
  while (((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1; // not within a character
  return bytes.toString("utf8", 0, end);
}
