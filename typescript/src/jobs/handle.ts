// A job that was enqueued: its result, its state, and its end.
import { checkSignal, untilAborted, type WaitOptions } from "../blocking.js";
import type { ItemInfo, Outcome } from "../codecs.generated.js";
import type { Queue } from "../queue.js";
import { readResult } from "./envelope.js";
import { infoOf, type JobInfo, type Snapshot, type Status, statusOf, unsuccessful } from "./info.js";
import type { Notes, Store } from "./store.js";
import { watchJob } from "./watch.js";

/** A job that was enqueued, perhaps by another program. */
export class Handle<Result = unknown> {
  readonly #store: Store;
  readonly #queue: Queue;

  /**
   * `added` is false if a job of this id was in its queue already, if the result of a `unique` job is kept, or if the slot of a job
   * with `throttle` has its job. Undefined for a handle of an earlier job.
   */
  constructor(
    store: Store,
    readonly id: string,
    readonly queue: string,
    readonly added: boolean | undefined,
  ) {
    this.#store = store;
    this.#queue = store.queue(queue);
  }

  /**
   * Returns what the function returned, null if it returned nothing. Waits for it, for `timeout` ms (default: without limit), without
   * polling the server. Throws JobFailed, JobCancelled, ResultTimeout, and ResultNotKept if no result will come.
   */
  async result(options: WaitOptions = {}): Promise<Result> {
    return await untilAborted(this.#result(options), checkSignal(options));
  }

  async #result(options: WaitOptions): Promise<Result> {
    const outcome = await this.#store.waits(this.queue).outcome(this.id, options);
    if (outcome.state === "result") return (readResult(outcome.content).result ?? null) as Result;
    const isKept = outcome.state === "failure";
    const item = isKept || outcome.state === "absent" ? undefined : await this.#queue.inspect(this.id);
    const isDead = isKept || outcome.state === "dead";
    const [data] = isDead ? await this.#store.data(this.#queue, [this.id]) : [];
    const state: [Outcome, Notes] = [outcome, await this.#notes()];
    throw unsuccessful(this.id, this.queue, state, String(item?.error ?? ""), data);
  }

  async status(): Promise<Status> {
    return statusOf(...(await this.state()));
  }

  /** Returns the outcome of the job now, and the notes beside it. */
  async state(): Promise<[Outcome, Notes]> {
    const [state] = await this.#store.outcomes(this.#queue, [this.id]);
    return state as [Outcome, Notes];
  }

  /** Returns all that is known of the job. */
  async info(): Promise<JobInfo> {
    return infoOf(this.id, this.queue, await this.#snapshot());
  }

  /**
   * Yields what `info` returns: at once, and whenever the status, the attempt or the progress changes; the last is the end of the job,
   * with the status "succeeded", "failed", "cancelled" or "unknown". Waits without polling, for `timeout` ms in all (default: without
   * limit), then throws as `result` does. A worker publishes the reports of its job every 250 ms at most. A change that is not published, such as
   * the end of a delay or the death of a worker, is seen within 4 s. A watch waits on two connections; from the 17th on that an App has
   * at a time, a watch has none and looks four times a second. Leaving the loop ends the wait at once, and an abort of `signal`
   * throws AbortError.
   */
  watch(options: WaitOptions = {}): AsyncGenerator<JobInfo, void, void> {
    const job = { id: this.id, queue: this.#queue, snapshot: () => this.#snapshot() };
    return watchJob(job, this.#store.changes, options);
  }

  async #snapshot(): Promise<Snapshot> {
    const outcome = await this.#queue.outcome(this.id);
    const [item, [data], notes] = await Promise.all([
      this.#queue.inspect(this.id) as Promise<ItemInfo>,
      this.#store.data(this.#queue, [this.id]),
      this.#notes(),
    ]);
    return { outcome, item, data, notes };
  }

  /**
   * Removes the job from its queue. Returns false if it has ended, or there is none. A worker that runs it finds out at its next
   * heartbeat, within a third of a lease, and aborts `signal`.
   */
  async cancel(): Promise<boolean> {
    return await this.#store.cancel(this.#queue, this.id);
  }

  /** Makes a dead job ready again, with all its attempts. Returns false if it is not dead. */
  async revive(): Promise<boolean> {
    return (await this.#queue.revive([this.id]))[0] ?? false;
  }

  /** Lets a job that is delayed, until its time or its next attempt, run now. Returns false if it is not delayed. */
  async promote(): Promise<boolean> {
    return (await this.#queue.promote([this.id]))[0] ?? false;
  }

  /** Deletes a dead job. Returns false if it is not dead. */
  async purge(): Promise<boolean> {
    return (await this.#queue.purge([this.id]))[0] ?? false;
  }

  async #notes(): Promise<Notes> {
    return (await this.#store.notes(this.#queue, [this.id]))[0] as Notes;
  }
}
