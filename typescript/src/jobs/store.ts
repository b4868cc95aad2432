// The calls of the job layer beside those of the queues: notes, cancelling, data. All on the client's connections.
import { type Client, type ClientParts, partsOf } from "../client.js";
import type { Outcome } from "../codecs.generated.js";
import * as commands from "../commands.js";
import type { Argument } from "../encoding.js";
import { QueueKeys } from "../keys.js";
import { type LeasedItem, Queue } from "../queue.js";
import { MAX_ENTRIES, SCRIPTS, WAIT_CAP_MS } from "../scripts.generated.js";
import { ChangeWaits } from "./change-waits.js";
import { MAX_COPY_BYTES } from "./envelope.js";
import {
  type CancelledNote,
  cancelledKey,
  changedKey,
  NO_OUTCOME,
  NOTE_LIFE_MS,
  type RunningNote,
  readCancelled,
  readRunning,
  runningKey,
  slotKey,
  wokenKey,
  writeCancelled,
  writeRunning,
} from "./job-state.js";
import { ResultWaits, WAITING } from "./result-waits.js";

/** How long a note about a cancellation stays. */
const CANCELLED_LIFE_MS = 86_400_000;

/** Queues that are kept for the next call: a program may have one for each of its users. */
const MAX_QUEUES = 1000;

/** The notes beside a job. */
export interface Notes {
  readonly running: RunningNote | undefined;
  readonly cancelled: CancelledNote | undefined;
}

interface OpenQueue {
  readonly queue: Queue;
  readonly waits: ResultWaits;
}

/** The queues of one App, and what stands beside them. */
export class Store {
  readonly #parts: ClientParts;
  readonly #opened = new Map<string, OpenQueue>();
  /** The waits for changes of jobs, in all queues. */
  readonly changes: ChangeWaits;

  constructor(
    readonly client: Client,
    readonly group: string,
  ) {
    this.#parts = partsOf(client);
    this.changes = new ChangeWaits(this.#parts.pool);
  }

  queue(name: string): Queue {
    return this.#open(name).queue;
  }

  /** A queue whose items carry no span, as schedules do: all their jobs would be of the trace in which they were first added. */
  untraced(name: string): Queue {
    return new Queue(this.client, this.#parts.pool, new QueueKeys(name, this.group));
  }

  /** The waits for results of jobs in a queue. */
  waits(name: string): ResultWaits {
    return this.#open(name).waits;
  }

  #open(name: string): OpenQueue {
    const known = this.#opened.get(name);
    if (known) return known;
    const queue = this.client.queue(name, { group: this.group });
    const opened = { queue, waits: new ResultWaits(queue) };
    const [oldest] = this.#opened.size < MAX_QUEUES ? [] : this.#opened.keys();
    if (oldest !== undefined) this.#opened.delete(oldest);
    this.#opened.set(name, opened);
    return opened;
  }

  /** What the worker of an App is made of. */
  get parts(): ClientParts {
    return this.#parts;
  }

  /** The server's time, in milliseconds since 1970. */
  async serverTime(queue: Queue): Promise<number> {
    return Math.round(((await queue.stats()).get("now") ?? 0) / 1000);
  }

  /** The data of items, undefined for a missing one. */
  async data(queue: Queue, ids: readonly string[]): Promise<(Buffer | undefined)[]> {
    const found = await inChunks(ids, (some) => this.#send("HMGET", queue.keys.key("items"), ...some));
    return found.map((data) => data ?? undefined);
  }

  /** The notes beside jobs. */
  async notes(queue: Queue, ids: readonly string[]): Promise<Notes[]> {
    const { keys } = queue;
    const found = await inChunks(
      ids.flatMap((id) => [runningKey(keys, id), cancelledKey(keys, id)]),
      ([first = "", ...rest]) => this.#send("MGET", first, ...rest),
    );
    return ids.map((_, index) => ({
      running: readRunning(found[2 * index] ?? null),
      cancelled: readCancelled(found[2 * index + 1] ?? null),
    }));
  }

  /** Writes the note of a running job, and wakes clients that watch the job. */
  async writeRunning({ queue, id, attempt }: LeasedItem, note: RunningNote): Promise<void> {
    const key = runningKey(queue.keys, id.toString());
    await this.#transaction(key, [
      ["SET", key, writeRunning(note), "PX", String(NOTE_LIFE_MS)],
      ...published(queue, id.toString(), attempt, note.n ?? 0),
    ]);
  }

  /** Deletes it, if there is one, at the end of an attempt, which is change number `n`. */
  async deleteRunning({ queue, id, attempt }: LeasedItem, n: number): Promise<void> {
    const key = runningKey(queue.keys, id.toString());
    await this.#transaction(key, [["DEL", key], ...published(queue, id.toString(), attempt, n)]);
  }

  /** Deletes all notes beside jobs (LQ-JOB-26). If that fails, they stay. */
  async forget(queue: Queue, ids: readonly string[]): Promise<void> {
    const keys = ids.flatMap((id) => [runningKey(queue.keys, id), cancelledKey(queue.keys, id)]);
    await this.#send("DEL", keys[0] as string, ...keys.slice(1)).catch(() => {});
  }

  /**
   * Takes the slots of throttled jobs, each by its id and its length in ms. Returns for each whether it was free. If it throws, it has
   * taken none for certain, except those whose reply was lost.
   */
  async takeSlots(queue: Queue, slots: readonly (readonly [string, number])[]): Promise<boolean[]> {
    const found: PromiseSettledResult<unknown>[] = [];
    for (let from = 0; from < slots.length; from += MAX_ENTRIES) {
      const some = slots.slice(from, from + MAX_ENTRIES);
      const sent = some.map(([id, length]) =>
        this.#send("SET", slotKey(queue.keys, id), "1", "NX", "PX", String(length)),
      );
      found.push(...(await Promise.allSettled(sent)));
      if (found.some((each) => each.status === "rejected")) break;
    }
    const taken = found.map((each) => each.status === "fulfilled" && each.value !== null);
    const failed = found.find((each) => each.status === "rejected");
    if (!failed) return taken;
    await this.freeSlots(
      queue,
      slots.filter((_, index) => taken[index]).map(([id]) => id),
    );
    throw failed.reason;
  }

  /** Frees slots that were taken. If that fails, they stay taken. */
  async freeSlots(queue: Queue, ids: readonly string[]): Promise<void> {
    for (let from = 0; from < ids.length; from += MAX_ENTRIES) {
      const [first = "", ...rest] = ids.slice(from, from + MAX_ENTRIES).map((id) => slotKey(queue.keys, id));
      await this.#send("DEL", first, ...rest).catch(() => {});
    }
  }

  /** Removes the item of a job and notes that it was cancelled, in one step (LQ-JOB-11). Returns false if there was none. */
  async cancel(queue: Queue, id: string): Promise<boolean> {
    if (!WAITING.has((await queue.outcome(id)).state)) return false;
    const [data] = await this.data(queue, [id]);
    const note = { cancelled: Date.now(), job: data && data.length <= MAX_COPY_BYTES ? data : undefined };
    const removal = commands.remove(queue.keys, [id]);
    const key = cancelledKey(queue.keys, id);
    const [reply] = await this.#transaction(key, [
      ["EVAL", SCRIPTS.remove.source, String(removal.keys.length), ...removal.keys, ...removal.args],
      ["SET", key, writeCancelled(note), "PX", String(CANCELLED_LIFE_MS)],
    ]);
    const isRemoved = !(reply instanceof Error) && removal.read(reply)[0] !== "absent";
    if (!isRemoved) await this.#send("DEL", key); // it ended meanwhile, or could not be removed
    if (reply instanceof Error) throw reply;
    if (isRemoved) await this.#wake(queue, id);
    return isRemoved;
  }

  /** Wakes clients that wait for the outcome of a job that was cancelled. Without this they look again at the wait cap. */
  async #wake(queue: Queue, id: string): Promise<void> {
    const woken = wokenKey(queue.keys, id);
    await this.#transaction(woken, [
      ["RPUSH", woken, NO_OUTCOME],
      ["PEXPIRE", woken, String(WAIT_CAP_MS)],
      // Not in place of an outcome: the id may be in use again.
      ["RENAMENX", woken, queue.keys.key(`result:${id}`)],
      ["DEL", woken],
    ]).catch(() => {});
  }

  /** Whether a schedule is paused (LQ-JOB-15). `queue`: of the schedules. */
  async isPaused(queue: Queue, name: string): Promise<boolean> {
    return (await this.#send("SISMEMBER", queue.keys.key("paused"), name)) === 1;
  }

  /** As `isPaused`, for up to 768. */
  async arePaused(queue: Queue, names: readonly string[]): Promise<boolean[]> {
    if (names.length === 0) return [];
    const found = (await this.#send("SMISMEMBER", queue.keys.key("paused"), ...names)) as number[];
    return found.map((reply) => reply === 1);
  }

  async setPaused(queue: Queue, name: string, paused: boolean): Promise<void> {
    await this.#send(paused ? "SADD" : "SREM", queue.keys.key("paused"), name);
  }

  /** Outcomes of jobs, and the notes of those that are absent. */
  async outcomes(queue: Queue, ids: readonly string[]): Promise<[Outcome, Notes][]> {
    const outcomes = await queue.outcome(ids);
    const absent = ids.filter((_, index) => outcomes[index]?.state === "absent");
    const notes = absent.length > 0 ? await this.notes(queue, absent) : [];
    const byId = new Map(absent.map((id, index) => [id, notes[index]]));
    const none: Notes = { running: undefined, cancelled: undefined };
    return outcomes.map((outcome, index) => [outcome, byId.get(ids[index] as string) ?? none]);
  }

  async #send(name: string, key: string, ...args: Argument[]): Promise<unknown> {
    const { pool, replyTimeout } = this.#parts;
    return await pool.shared.sendToSlot(name, [key, ...args], replyTimeout);
  }

  async #transaction(
    key: string,
    entries: readonly (readonly [string, ...Argument[]])[],
  ): Promise<readonly unknown[]> {
    const { pool, replyTimeout } = this.#parts;
    return await pool.shared.transaction(key, entries, replyTimeout);
  }
}

/** Reads many values in chunks. */
async function inChunks(
  keys: readonly string[],
  call: (some: readonly string[]) => Promise<unknown>,
): Promise<(Buffer | null)[]> {
  const found: (Buffer | null)[] = [];
  for (let from = 0; from < keys.length; from += MAX_ENTRIES) {
    found.push(...((await call(keys.slice(from, from + MAX_ENTRIES))) as (Buffer | null)[]));
  }
  return found;
}

/** What wakes clients that watch a job (LQ-JOB-63). */
function published(queue: Queue, id: string, attempt: number, n: number): [string, ...string[]][] {
  const key = changedKey(queue.keys, id, attempt, n);
  return [
    ["RPUSH", key, "1"],
    ["PEXPIRE", key, String(WAIT_CAP_MS)],
  ];
}
