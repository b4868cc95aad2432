// Values as messages have them, and as the client takes and gives them (conformance-tests/ADAPTER.md).
import type { Bytes, ItemInfo, LeasedItem, NewItem, Outcome, WorkerInfo } from "leaseq";

export type Json = Record<string, unknown>;
export interface Bytes64 {
  $b64: string;
}

export const bytes = (value: unknown): Buffer => Buffer.from((value as Bytes64).$b64, "base64");
/** An id to add or to look up: bytes, or the text that a message has. */
export const itemId = (value: unknown): Bytes =>
  ((value as { $text?: string }).$text ?? bytes(value)) as Bytes;
export const b64 = (value: Uint8Array): Bytes64 => ({ $b64: Buffer.from(value).toString("base64") });
/** Numbers beyond 2^53 - 1 come as strings. */
export const number = (value: unknown): number => Number(value);
export const ids = (args: Json): Bytes[] => (args.ids as unknown[]).map(itemId);

/** The fields that are there, under the client's names. */
function rename(given: Json, names: Record<string, [string, (value: unknown) => unknown]>): Json {
  const renamed: Json = {};
  for (const [name, value] of Object.entries(given)) {
    const known = names[name];
    if (known) renamed[known[0]] = known[1](value);
  }
  return renamed;
}

const asIs = (value: unknown): unknown => value;

export function newItem(item: Json, options: Json = {}): NewItem {
  const headers = Object.entries((item.headers ?? {}) as Json).map(([name, value]) => [name, bytes(value)]);
  return {
    id: itemId(item.id),
    data: bytes(item.data),
    ...rename(options, {
      delay_ms: ["delay", number],
      not_before_ms: ["notBefore", number],
      priority: ["priority", number],
      max_attempts: ["maxAttempts", number],
      expires_in_ms: ["expiresIn", number],
      expires_to: ["expiresTo", asIs],
      keep_ms: ["keep", number],
    }),
    ...rename(item, { content_type: ["contentType", bytes], headers: ["headers", () => headers] }),
  };
}

export const completion = (entry: Json): Json =>
  rename(entry, { result: ["result", bytes], keep_ms: ["keep", number] });

export const releaseOptions = (args: Json): Json =>
  rename(args, { delay_ms: ["delay", number], uncounted: ["uncounted", asIs], error: ["error", asIs] });

export const configuration = (args: Json): Json =>
  rename(args, {
    max_data: ["maxData", number],
    max_items: ["maxItems", number],
    max_attempts: ["maxAttempts", number],
  });

export const workerOptions = (args: Json): Json =>
  rename(
    { retry_ms: 0, ...args },
    {
      concurrency: ["concurrency", number],
      lease_ms: ["duration", number],
      retry_ms: ["backoff", number],
      grace_ms: ["grace", number],
    },
  );

export function waitOptions(args: Json): { timeout?: number } {
  if (!("wait_ms" in args)) return {};
  return { timeout: args.wait_ms === null ? Number.POSITIVE_INFINITY : number(args.wait_ms) };
}

export const added = (created: number): string => (created > 0 ? "added" : created === 0 ? "exists" : "full");

export function lease(held: LeasedItem): Json {
  return {
    id: b64(held.id),
    data: b64(held.data),
    token: String(held.token),
    attempt: held.attempt,
    deadline: String(held.deadline),
    keep_ms: held.keep ?? 0,
    content_type: held.contentType ? b64(held.contentType) : null,
    headers: Object.fromEntries([...held.headers].map(([name, value]) => [name, b64(value)])),
  };
}

export function outcome(id: Buffer, found: Outcome): Json {
  return {
    id: b64(id),
    state: found.state,
    created: String(found.created),
    ended: String(found.ended),
    attempt: found.attempt,
    keep_ms: found.keep,
    content: b64(found.content),
  };
}

export function inspection(id: Buffer, info: ItemInfo): Json {
  const { state, attempt, size, priority } = info;
  return {
    id: b64(id),
    state,
    time: String(info.time),
    attempt,
    token: String(info.token),
    created: String(info.created),
    size,
    priority,
    max_attempts: info.maxAttempts,
    keep_ms: info.keep,
    expires: String(info.expires),
    error: info.error.toString(),
  };
}

/** The counts of the adapter protocol. The client returns every count of the script, new ones too. */
const COUNTS = new Set(
  (
    "now items ready delayed leased dead kept overdue due waited added leases completed promoted reclaimed released died " +
    "expired revived purged removed dropped largest max_data max_items max_attempts paused"
  ).split(" "),
);

export function stats(counts: ReadonlyMap<string, number>): Json {
  const shaped: Json = Object.fromEntries([...counts].filter(([name]) => COUNTS.has(name)));
  for (const time of ["now", "waited"]) shaped[time] = String(shaped[time]);
  shaped.paused = shaped.paused === 1;
  return shaped;
}

export const liveWorker = ({ id, started, items, ...report }: WorkerInfo): Json => ({
  worker: id,
  started: String(started),
  items: items.map((item) => ({ ...item, id: b64(Buffer.from(item.id)) })),
  ...report,
});
