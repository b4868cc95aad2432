// The presence of live workers (page 02.9): a worker reports itself and the items it holds to the server, and a client lists the
// reports. worker.ts reports, client.ts lists.
import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import { now, within } from "./clock.js";
import type { ClusterConnection } from "./cluster.js";
import { BadArgumentError } from "./errors.js";
import { VERSION } from "./version.js";

/** The index: a ZSET of the ids of workers (LQ-WORKER-2). */
export const WORKERS_KEY = "leaseq:workers";

const ID = /^[A-Za-z0-9_.:-]{1,200}$/;
const REGISTRY_ENTRY = /^[A-Za-z0-9_.-]{1,100}:[A-Za-z0-9_.-]{1,100}$/;
/** How long a report lasts, and how often a worker sends one. */
const TTL_MS = 30_000;
const REPORT_INTERVAL_MS = 10_000;
/** How long an id stays in the index, and how often a worker renews it. */
const INDEX_TTL_MS = 600_000;
const INDEX_REFRESH_MS = 60_000;
/** The most expired ids that one renewal removes from the index. */
const MAX_EXPIRED_IDS = 100;
/** The most items in a report. */
const MAX_ITEMS = 100;
/** How long a wish for a worker lasts. */
const WISH_TTL_MS = 86_400_000;
/** How many ids of the index are read at a time. */
const PAGE_SIZE = 1000;
/** The timeout of each command of a report. A worker that stops waits for the last ones. */
const COMMAND_TIMEOUT_MS = 1000;

/** A live worker, as of its last report. */
export interface WorkerInfo {
  readonly id: string;
  readonly host: string;
  readonly pid: number;
  /** Name and version of the client. */
  readonly client: string;
  /** When it sent its first report: microseconds since 1970 on the server's clock. */
  readonly started: number;
  /** Whether it has stopped leasing. */
  readonly stopping: boolean;
  /** Whether it leases nothing because a program wishes so: see `Client.quietWorker`. */
  readonly quiet: boolean;
  /** How many items it works on at a time at most. */
  readonly concurrency: number;
  readonly completed: number;
  /** The queues that it leases from, each `<group>:<name>`. */
  readonly queues: readonly string[];
  /** How many items it holds. */
  readonly held: number;
  /** Up to 100 of them. */
  readonly items: readonly HeldItem[];
}

/** An item that a live worker holds. */
export interface HeldItem {
  /** `<group>:<name>`. */
  readonly queue: string;
  readonly id: string;
  readonly attempt: number;
  /** Milliseconds since it was leased: up to now, if it is still held. */
  readonly ms: number;
}

/** The part of a report that changes. */
export type WorkerStatus = Pick<WorkerInfo, "stopping" | "quiet" | "completed" | "held" | "items">;

/** A new id of a worker: `<host>:<pid>:<random>` (LQ-WORKER-1). */
export function workerId(): string {
  const host = hostname()
    .replace(/[^A-Za-z0-9_.-]/g, "_")
    .slice(0, 100);
  return `${host}:${process.pid}:${randomBytes(6).toString("hex")}`;
}

/**
 * Reports a worker to the server from `start` to `unregister`. It never fails or delays the work (LQ-WORKER-3): it has a
 * separate connection, and its errors are ignored.
 */
export class PresenceReporter {
  readonly #id: string;
  readonly #connection: ClusterConnection;
  readonly #settings: { concurrency: number; queues: readonly string[] };
  readonly #status: () => WorkerStatus;
  readonly #steer: (wish: string) => void;
  #started: number | undefined;
  /** When it last registered: on the clock of `now`, and by the server's clock. */
  #registeredAt = Number.NEGATIVE_INFINITY;
  #serverTime = 0;
  #timer: NodeJS.Timeout | undefined;
  /** Commands are sent one after the other, so that no report comes behind the end. */
  #lastSend: Promise<unknown> = Promise.resolve();
  #unregistered = false;

  constructor(
    id: string,
    connection: ClusterConnection,
    concurrency: number,
    queues: readonly string[],
    status: () => WorkerStatus,
    steer: (wish: string) => void,
  ) {
    this.#id = id;
    this.#connection = connection;
    this.#settings = { concurrency, queues };
    this.#status = status;
    this.#steer = steer;
  }

  /** Sends a report now and at intervals. */
  start(): void {
    this.#timer = setInterval(() => this.reportNow(), REPORT_INTERVAL_MS);
    this.#timer.unref();
    this.reportNow();
  }

  /** Sends a report now, in the background. */
  reportNow(): void {
    this.#enqueue(async () => {
      if (this.#unregistered) return;
      if (now() - this.#registeredAt >= INDEX_REFRESH_MS) await this.#register();
      const { items, ...status } = this.#status();
      const reported = this.#serverTime + Math.round(now() - this.#registeredAt);
      const fixed = {
        version: 1,
        reported,
        host: hostname(),
        pid: process.pid,
        client: `leaseq (TypeScript) ${VERSION}`,
        started: this.#started,
      };
      const report = { ...fixed, ...this.#settings, ...status, items: items.slice(0, MAX_ITEMS) };
      await this.#send("SET", this.#key, JSON.stringify(report), "PX", String(TTL_MS));
      const wish = await this.#send("GET", wishKey(this.#id));
      if (!this.#unregistered) this.#steer(wish === null ? "" : String(wish));
    });
  }

  /** Removes the worker from the server, if the server can be reached (LQ-WORKER-4), and closes the connection. */
  async unregister(): Promise<void> {
    clearInterval(this.#timer);
    this.#unregistered = true;
    this.#enqueue(() => this.#send("DEL", this.#key));
    this.#enqueue(() => this.#send("DEL", wishKey(this.#id)));
    this.#enqueue(() => this.#send("ZREM", WORKERS_KEY, this.#id));
    await within(this.#lastSend, COMMAND_TIMEOUT_MS);
    this.#connection.close();
  }

  /** Adds the worker to the index, by the server's clock, and removes expired ids from it (LQ-WORKER-2). */
  async #register(): Promise<void> {
    const registeredAt = now();
    const time = await serverTime(this.#connection, COMMAND_TIMEOUT_MS);
    await this.#send("ZADD", WORKERS_KEY, String(time + INDEX_TTL_MS), this.#id);
    this.#started ??= time;
    this.#registeredAt = registeredAt;
    this.#serverTime = time;
    const expired = await this.#send(
      "ZRANGEBYSCORE",
      WORKERS_KEY,
      "-inf",
      String(time),
      "LIMIT",
      "0",
      String(MAX_EXPIRED_IDS),
    );
    if ((expired as Buffer[]).length > 0) await this.#send("ZREM", WORKERS_KEY, ...(expired as Buffer[]));
  }

  get #key(): string {
    return workerKey(this.#id);
  }

  #send(name: string, ...args: (string | Buffer)[]): Promise<unknown> {
    return this.#connection.sendToSlot(name, args, COMMAND_TIMEOUT_MS);
  }

  #enqueue(task: () => Promise<unknown>): void {
    this.#lastSend = this.#lastSend.then(task).catch(() => {});
  }
}

function workerKey(id: string): string {
  return `leaseq:worker:${id}`;
}

/** The key of what a program wishes a worker to do. */
function wishKey(id: string): string {
  return `${workerKey(id)}/wish`;
}

/** Writes a wish for a live worker, or deletes that which is there (LQ-WORKER-7). Returns false if no such worker is alive. */
export async function steerWorker(
  connection: ClusterConnection,
  id: string,
  wish: "quiet" | "stop" | undefined,
  timeoutMs: number,
): Promise<boolean> {
  if (typeof id !== "string" || !ID.test(id))
    throw new BadArgumentError(`not the id of a worker: ${String(id).slice(0, 220)}`);
  if (wish === undefined) await connection.sendToSlot("DEL", [wishKey(id)], timeoutMs);
  if ((await connection.sendToSlot("GET", [workerKey(id)], timeoutMs)) === null) return false;
  if (wish !== undefined) {
    await connection.sendToSlot("SET", [wishKey(id), wish, "PX", String(WISH_TTL_MS)], timeoutMs);
  }
  return true;
}

/**
 * The live workers: those in the index that have a valid report (LQ-WORKER-5). A page starts at the last score of the one before:
 * ranks shift when an id is renewed or removed, and the score of an id only grows.
 */
export async function listWorkers(connection: ClusterConnection, timeoutMs: number): Promise<WorkerInfo[]> {
  const found: WorkerInfo[] = [];
  const seen = new Set<string>();
  const time = await serverTime(connection, timeoutMs);
  let start = "-inf";
  let offset = 0;
  for (;;) {
    const limit = ["LIMIT", String(offset), String(PAGE_SIZE)];
    const range = [WORKERS_KEY, start, "+inf", "BYSCORE", ...limit, "WITHSCORES"];
    const reply = ((await connection.sendToSlot("ZRANGE", range, timeoutMs)) as Buffer[]).map(String);
    const page = reply.filter((_, index) => index % 2 === 0);
    const ids = page.filter((id) => ID.test(id) && !seen.has(id));
    for (const id of ids) seen.add(id);
    // One GET for each: the keys are in different slots.
    const values = await Promise.all(
      ids.map((id) => connection.sendToSlot("GET", [workerKey(id)], timeoutMs)),
    );
    for (const [index, text] of values.entries()) {
      const worker = text === null ? undefined : decodeWorkerInfo(ids[index] as string, String(text), time);
      if (worker) found.push(worker);
    }
    if (page.length < PAGE_SIZE) return found;
    const last = reply.at(-1) as string;
    // A page of one score: the ids behind it may have that score too.
    if (reply[1] !== last) offset = 0;
    else offset = last === start ? offset + PAGE_SIZE : PAGE_SIZE;
    start = last;
  }
}

/** The server's time in milliseconds since 1970. */
async function serverTime(connection: ClusterConnection, timeoutMs: number): Promise<number> {
  const [seconds, micros] = (await connection.sendOnce("TIME", [], timeoutMs)) as Buffer[];
  return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
}

/** A report from JSON, read at `time`; undefined if it is invalid or of another version. Unknown members are dropped. */
function decodeWorkerInfo(id: string, text: string, time: number): WorkerInfo | undefined {
  let report: unknown;
  try {
    report = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!matchesSchema(report, WORKER_SCHEMA) || report.version !== 1) return undefined;
  const { host, pid, client, started, stopping, concurrency, completed, queues, held, items } =
    report as unknown as WorkerInfo;
  if (!queues.every((queue) => typeof queue === "string" && REGISTRY_ENTRY.test(queue))) return undefined;
  if (!items.every((item) => matchesSchema(item, ITEM_SCHEMA))) return undefined;
  // How long ago it reported. Workers of earlier clients do not say when.
  const age = isCount(report.reported) ? Math.max(0, time - (report.reported as number)) : 0;
  const knownMembers = items.map(({ queue, id, attempt, ms }) => ({ queue, id, attempt, ms: ms + age }));
  return {
    id,
    host,
    pid,
    client,
    started: started * 1000,
    stopping,
    quiet: report.quiet === true,
    concurrency,
    completed,
    queues,
    held,
    items: knownMembers,
  };
}

const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0;
const isText = (value: unknown): boolean => typeof value === "string";
/** A check for each member that a report must have. */
const WORKER_SCHEMA: Record<string, (value: unknown) => boolean> = {
  version: isCount,
  host: isText,
  pid: isCount,
  client: isText,
  started: isCount,
  stopping: (value) => typeof value === "boolean",
  concurrency: isCount,
  completed: isCount,
  queues: Array.isArray,
  held: isCount,
  items: Array.isArray,
};
const ITEM_SCHEMA = { queue: isText, id: isText, attempt: isCount, ms: isCount };

function matchesSchema(
  value: unknown,
  schema: Record<string, (value: unknown) => boolean>,
): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null) return false;
  return Object.entries(schema).every(([name, fits]) => fits((value as Record<string, unknown>)[name]));
}
