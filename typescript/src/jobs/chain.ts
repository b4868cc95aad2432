// Chains: jobs one after the other, each given what the one before it returned (LQ-JOB-16).
import { checkSignal, untilAborted, type WaitOptions } from "../blocking.js";
import { now } from "../clock.js";
import { BadArgumentError } from "../errors.js";
import { randomId } from "../item-id.js";
import { Arguments } from "./arguments.js";
import { Call } from "./call.js";
import { copied } from "./format.js";
import { Handle } from "./handle.js";
import { type Status, statusesOfChain } from "./info.js";
import type { JobFunction } from "./job-function.js";
import type { CallOptions } from "./options.js";
import { numbered, type Producer } from "./producer.js";

/**
 * Jobs one after the other. One call of the server completes a job and enqueues the next, so no crash comes between. A dead job
 * stops the chain; if it is revived, the chain goes on.
 */
export class Chain<Result> {
  readonly #producer: Producer;
  readonly #first: Call;
  readonly #later: readonly Call[];

  constructor(producer: Producer, first: Call, later: readonly Call[] = []) {
    this.#producer = producer;
    this.#first = first;
    this.#later = later;
  }

  /**
   * Returns the chain with one more job, whose first argument is what the job before it returned. `more`: its other arguments.
   * Throws BadArgumentError for `id` and `at`: the id follows from the first job, and a delay counts from the end of the job before.
   * Likewise for a job that is unique or throttled, which only the first one can be.
   */
  next<Next>(step: JobFunction<Result, Next>, options?: Omit<CallOptions, "id" | "at">): Chain<Next>;
  next<Next>(
    step: JobFunction<never, Next>,
    options: Omit<CallOptions, "id" | "at"> | undefined,
    more: Arguments,
  ): Chain<Next>;
  next<Next>(
    step: JobFunction<never, Next>,
    options: Omit<CallOptions, "id" | "at"> = {},
    more = new Arguments(),
  ): Chain<Next> {
    const { id, at } = options as CallOptions;
    if (id !== undefined || at !== undefined) {
      throw new BadArgumentError("a job in a chain cannot have an id or a time: the chain sets them");
    }
    const call = new Call(step.callee, more, options);
    if (call.isOnce) {
      throw new BadArgumentError(
        "a later job of a chain is neither unique nor throttled, as its first argument is not known yet: give it unique: false and " +
          "throttle: 0; the first job of the chain can be",
      );
    }
    return new Chain<Next>(this.#producer, this.#first, [...this.#later, call]);
  }

  /** Enqueues the first job, which carries the others with it. */
  async enqueue(): Promise<ChainHandle<Result>> {
    const { format } = this.#producer;
    let first = this.#first;
    let later = this.#later.map((call) => call.stage(format));
    let id = first.id ?? randomId();
    if (first.isOnce) {
      [first, later] = [first.copied(format), copied(later)]; // the server is asked for its time first
      id = await this.#producer.idOf(first);
    }
    const stages = numbered(id, later);
    const [enqueued] = await this.#producer.enqueue([first.leading(id, stages)]);
    const jobs = [{ id, queue: first.options.queue }, ...stages];
    return new ChainHandle(
      jobs.map((job) => new Handle(this.#producer.store, job.id ?? "", job.queue, enqueued?.added)),
    );
  }
}

/** A chain that was enqueued. */
export class ChainHandle<Result> {
  /** `stages`: a handle of each job; jobs whose turn has not come are "unknown". */
  constructor(readonly stages: readonly Handle[]) {}

  /** As that of the first job: false if a job with its id was in the queue already. */
  get added(): boolean | undefined {
    return this.stages[0]?.added;
  }

  /** Returns what the last job returned. Throws as `Handle.result`, for the job that failed. */
  async result(options: WaitOptions = {}): Promise<Result> {
    return await untilAborted(this.#result(options), checkSignal(options));
  }

  async #result({ timeout, signal }: WaitOptions): Promise<Result> {
    const endAt = timeout === undefined ? undefined : now() + timeout;
    const left = () => ({ signal, timeout: endAt === undefined ? undefined : Math.max(0, endAt - now()) });
    for (const [index, stage] of this.stages.slice(0, -1).entries()) {
      const later = (await this.#statuses()).slice(index + 1);
      if (later.every((status) => status === "unknown")) await stage.result(left());
    }
    return (await this.stages.at(-1)?.result(left())) as Result;
  }

  /**
   * Returns the status of the job whose turn it is; "succeeded" when the last one has, "unknown" if that job has ended and
   * nothing is kept of it.
   */
  async status(): Promise<Status> {
    for (let handedOn = -1; ; ) {
      const statuses = await this.#statuses();
      const turn = statuses.findLastIndex((status) => status !== "unknown");
      const status = statuses[turn] ?? "unknown";
      if (status !== "succeeded" || turn === statuses.length - 1) return status;
      if (turn === handedOn) return "unknown";
      handedOn = turn; // the next is there already, or its end was not kept: it was asked for first
    }
  }

  /** Cancels the job whose turn it is, and with it the later ones. Returns false if there was none. */
  async cancel(): Promise<boolean> {
    for (const stage of this.stages) if (await stage.cancel()) return true;
    return false;
  }

  /** Of each, asked from the last to the first: what is handed on meanwhile is seen in one of them. */
  async #statuses(): Promise<Status[]> {
    const states: Awaited<ReturnType<Handle["state"]>>[] = [];
    for (const stage of [...this.stages].reverse()) states.unshift(await stage.state());
    return statusesOfChain(states);
  }
}
