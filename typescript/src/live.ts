// Live workers (page 02.9): a worker says on the server that it lives and what it holds, and whoever looks reads that.
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import type { Route } from "./route.js";

/** The ZSET of the ids of workers (LQ-WORKER-2). */
export const WORKERS = "leaseq:workers";

const ID = /^[A-Za-z0-9_.:-]{1,200}$/;
const ENTRY = /^[A-Za-z0-9_.-]{1,100}:[A-Za-z0-9_.-]{1,100}$/;
const LIFE_MS = 30_000;
const AGAIN_MS = 10_000;
const INDEX_LIFE_MS = 600_000;
const ENTER_AGAIN_MS = 60_000;
const MOST_OLD = 100;
const MOST_ITEMS = 100;
const PAGE = 1000;
/** How long each of these commands may take; the last ones are waited for when the worker ends. */
const PATIENCE_MS = 1000;

/** What a worker says of itself. */
export interface LiveWorker {
  readonly id: string;
  readonly host: string;
  readonly pid: number;
  /** Name and version of the client. */
  readonly client: string;
  /** When it was first announced: microseconds since 1970 on the server's clock. */
  readonly started: number;
  /** Whether it leases no more. */
  readonly stopping: boolean;
  /** How many items it works on at a time. */
  readonly concurrency: number;
  readonly completed: number;
  /** The queues that it leases from, each `<group>:<name>`. */
  readonly queues: readonly string[];
  /** How many items it holds. */
  readonly held: number;
  /** Up to 100 of them. */
  readonly items: readonly LiveItem[];
}

export interface LiveItem {
  /** `<group>:<name>`. */
  readonly queue: string;
  readonly id: string;
  readonly attempt: number;
  /** Milliseconds since it was leased. */
  readonly ms: number;
}

/** What changes while a worker lives. */
export type Doing = Pick<LiveWorker, "stopping" | "completed" | "held" | "items">;

/**
 * Announces a worker from `begin` to `end`. Nothing of it fails or delays the work (LQ-WORKER-3): it has a connection of its
 * own, waits for nobody's call, and its errors are nobody's.
 */
export class Announcer {
  readonly #id = `${hostname()
    .replace(/[^A-Za-z0-9_.-]/g, "_")
    .slice(0, 100)}:${process.pid}:${randomBytes(6).toString("hex")}`;
  readonly #lane: Route;
  readonly #fixed: { concurrency: number; queues: readonly string[] };
  readonly #doing: () => Doing;
  #started: number | undefined;
  #entered = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;
  /** What is sent, one thing after the other: an announcement must not come behind the end. */
  #last: Promise<unknown> = Promise.resolve();
  #over = false;

  constructor(lane: Route, concurrency: number, queues: readonly string[], doing: () => Doing) {
    this.#lane = lane;
    this.#fixed = { concurrency, queues };
    this.#doing = doing;
  }

  begin(): void {
    this.#timer = setInterval(() => this.announce(), AGAIN_MS);
    this.#timer.unref();
    this.announce();
  }

  /** Says now what the worker does. */
  announce(): void {
    this.#next(async () => {
      if (this.#over) return;
      if (performance.now() - this.#entered >= ENTER_AGAIN_MS) await this.#enter();
      const { items, ...doing } = this.#doing();
      const fixed = {
        version: 1,
        host: hostname(),
        pid: process.pid,
        client: client(),
        started: this.#started,
      };
      const said = { ...fixed, ...this.#fixed, ...doing, items: items.slice(0, MOST_ITEMS) };
      await this.#send("SET", this.#key, JSON.stringify(said), "PX", String(LIFE_MS));
    });
  }

  /** Takes the worker off, as far as the server can still be told (LQ-WORKER-4). */
  async end(): Promise<void> {
    clearInterval(this.#timer);
    this.#over = true;
    this.#next(() => this.#send("DEL", this.#key));
    this.#next(() => this.#send("ZREM", WORKERS, this.#id));
    await this.#last;
    this.#lane.close();
  }

  /** Into the index, by the server's clock, and out of it those whose time has passed (LQ-WORKER-2). */
  async #enter(): Promise<void> {
    const [seconds, micros] = (await this.#lane.command("TIME", [], PATIENCE_MS)) as Buffer[];
    const time = Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
    await this.#send("ZADD", WORKERS, String(time + INDEX_LIFE_MS), this.#id);
    this.#started ??= time;
    this.#entered = performance.now();
    const old = await this.#send(
      "ZRANGEBYSCORE",
      WORKERS,
      "-inf",
      String(time),
      "LIMIT",
      "0",
      String(MOST_OLD),
    );
    if ((old as Buffer[]).length > 0) await this.#send("ZREM", WORKERS, ...(old as Buffer[]));
  }

  get #key(): string {
    return `leaseq:worker:${this.#id}`;
  }

  #send(name: string, ...args: (string | Buffer)[]): Promise<unknown> {
    return this.#lane.follow(name, args, PATIENCE_MS);
  }

  #next(task: () => Promise<unknown>): void {
    this.#last = this.#last.then(task).catch(() => {});
  }
}

/** Name and version of this client. */
function client(): string {
  const { name, version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
  return `${name} (TypeScript) ${version}`;
}

/** The workers that say that they live (LQ-WORKER-5). */
export async function liveWorkers(lane: Route, patience: number): Promise<LiveWorker[]> {
  const found = new Map<string, LiveWorker>();
  for (let start = 0; ; start += PAGE) {
    const range = [WORKERS, String(start), String(start + PAGE - 1)];
    const page = (await lane.follow("ZRANGE", range, patience)) as Buffer[];
    const ids = page.map(String).filter((id) => ID.test(id));
    // each key lies in a slot of its own
    const texts = await Promise.all(ids.map((id) => lane.follow("GET", [`leaseq:worker:${id}`], patience)));
    for (const [index, text] of texts.entries()) {
      const worker = text === null ? undefined : read(ids[index] as string, String(text));
      if (worker) found.set(worker.id, worker);
    }
    if (page.length < PAGE) return [...found.values()];
  }
}

function read(id: string, text: string): LiveWorker | undefined {
  let said: unknown;
  try {
    said = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!hasForm(said, FORM) || said.version !== 1) return undefined;
  const { host, pid, client, started, stopping, concurrency, completed, queues, held, items } =
    said as unknown as LiveWorker;
  if (!queues.every((queue) => typeof queue === "string" && ENTRY.test(queue))) return undefined;
  if (!items.every((item) => hasForm(item, ITEM_FORM))) return undefined;
  const told = items.map(({ queue, id, attempt, ms }) => ({ queue, id, attempt, ms }));
  return {
    id,
    host,
    pid,
    client,
    started: started * 1000,
    stopping,
    concurrency,
    completed,
    queues,
    held,
    items: told,
  };
}

const count = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0;
const text = (value: unknown): boolean => typeof value === "string";
const FORM: Record<string, (value: unknown) => boolean> = {
  version: count,
  host: text,
  pid: count,
  client: text,
  started: count,
  stopping: (value) => typeof value === "boolean",
  concurrency: count,
  completed: count,
  queues: Array.isArray,
  held: count,
  items: Array.isArray,
};
const ITEM_FORM = { queue: text, id: text, attempt: count, ms: count };

function hasForm(
  value: unknown,
  form: Record<string, (value: unknown) => boolean>,
): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null) return false;
  return Object.entries(form).every(([name, fits]) => fits((value as Record<string, unknown>)[name]));
}
