// The life of one item in a worker (page 13): it is run, then completed, released or given back. worker.ts starts it.
import { AsyncResource } from "node:async_hooks";
import { now } from "./clock.js";
import type { Released } from "./codecs.generated.js";
import type { Completer } from "./completer.js";
import { LeaseqError } from "./errors.js";
import {
  CompleteWith,
  type Disposition,
  type Ending,
  type HandlerContext,
  runHandler,
  textOf,
} from "./handler.js";
import { nameOf, type Reporter } from "./hooks.js";
import { Cancellation } from "./leased-item.js";
import type { HeldItem } from "./presence.js";
import type { LeasedItem } from "./queue.js";
import { DeadLetter, exponentialBackoff, Release, UNCOUNTED } from "./retry-policy.js";
import { isServerAway, pause, type ServerHealth } from "./server-health.js";
import { type HandlerSpan, withSpan } from "./tracing.js";
import type { Settings } from "./worker-settings.js";

/** How long a handler whose time limit is over may take to end, before its item goes back and its slot takes the next. */
export const UNWIND_MS = 1000;

/**
 * Works on one item. If it returns or resolves to something, that is the result of an item that was added with `keep`: text and bytes
 * as they are, anything else as JSON.
 */
export type Handler = (item: LeasedItem, context: HandlerContext) => unknown;

/** What the items of a worker share. */
export interface WorkerParts {
  readonly handler: Handler;
  readonly completer: Completer;
  readonly settings: Settings;
  readonly reporter: Reporter;
  readonly health: ServerHealth;
  /** Aborted when the worker is stopped. */
  readonly stopping: AbortSignal;
  /** Aborted when the grace time is over: no call is made again. */
  readonly lastCalls: AbortSignal;
}

/**
 * The states of an item, from left to right. Each arrow is an event; the words are those of page 13 and of the hooks.
 *
 *     leased --started--> running --returned-----------> completing --completed, lost--------------> over
 *       |                    |---threw, late-----------> releasing ---released, dead-lettered, lost--> over
 *       |                    '---grace over (forced)---> releasing, uncounted ---------------------> over
 *       |---attempts used up--> releasing, dead
 *       '---worker stopped----> releasing, uncounted
 */
type State = "leased" | "running" | "completing" | "releasing" | "over";

/** One leased item, from its lease to its end. */
export class ItemRun {
  /** When it was leased, on the clock of `now`. */
  readonly since = now();
  readonly item: LeasedItem;
  readonly #worker: WorkerParts;
  #state: State = "leased";
  #heartbeat: { stop(): void } | undefined;
  #limitTimer: NodeJS.Timeout | undefined;
  #span: HandlerSpan | undefined;
  #isLost = false;
  /** Whether a call that was to end the item has no reply: it may have ended it. */
  #mayHaveEnded = false;

  constructor(item: LeasedItem, worker: WorkerParts) {
    this.item = item;
    this.#worker = worker;
  }

  /** Runs the handler and ends the item as the handler ended. Returns whether it was completed. Never throws. */
  async run(): Promise<boolean> {
    const { item } = this;
    const exhausted = this.#worker.settings.policy.exhausted(item.attempt);
    if (exhausted) {
      this.#worker.reporter.log("error", `${nameOf(item)} is dead: ${exhausted.error}`);
      await this.#end(() => this.#release(exhausted));
      return false;
    }
    this.#state = "running";
    this.#heartbeat = item.heartbeat();
    const { lostSignal } = item;
    lostSignal.addEventListener("abort", () => {
      if (lostSignal.reason.why === "lost") this.#reportLoss();
    });
    const ending = await this.#runHandler();
    this.#heartbeat.stop();
    if (this.#state !== "running") return false; // the item was given back
    let completed = false;
    await this.#end(async () => {
      if ("error" in ending) await this.#fail(ending.error, ending.disposition);
      else completed = await this.#complete(ending);
    });
    return completed;
  }

  /** Gives the item back as if it had not been leased, unless it is being completed or released. Never throws. */
  async giveBack(): Promise<void> {
    if (this.#state !== "leased" && this.#state !== "running") return;
    this.#state = "releasing";
    this.#heartbeat?.stop();
    clearTimeout(this.#limitTimer);
    const error = new Cancellation("stop", "the worker stopped");
    this.item.abandon(error);
    this.#endSpan({ error });
    await this.#end(() => this.#release(UNCOUNTED));
  }

  /** For reports of the presence. */
  report(): HeldItem {
    const { item, since } = this;
    return {
      queue: item.queue.keys.registryEntry,
      id: item.id.toString(),
      attempt: item.attempt,
      ms: Math.round(now() - since),
    };
  }

  /** Whether its handler has ended, and the item is being completed or released. */
  get isEnding(): boolean {
    return this.#state === "completing" || this.#state === "releasing";
  }

  /** Makes the calls that end the item. If they fail, the item comes back when its lease is over. */
  async #end(calls: () => Promise<void>): Promise<void> {
    try {
      await calls();
    } catch (error) {
      this.#worker.reporter.log("error", `${nameOf(this.item)} is held until its lease is over:`, error);
    }
    this.#state = "over";
  }

  /** Runs the handler in a separate async context, and in its span. */
  async #runHandler(): Promise<Ending> {
    const { item } = this;
    const { handler, settings, reporter, stopping } = this.#worker;
    const context: HandlerContext = {
      signal: item.lostSignal,
      stopping,
      progress: (value) => reporter.emit("progress", item, value),
    };
    reporter.emit("started", item);
    const startedAt = now();
    const resource = new AsyncResource("leaseq.handler");
    const keepsResult = item.keep !== undefined;
    const span = reporter.startSpan(item);
    this.#span = span;
    const run = span ? inSpan(span, handler) : handler;
    const running = resource.runInAsyncScope(runHandler, undefined, run, item, context, keepsResult);
    const { timeLimit } = settings;
    const ending = timeLimit === undefined ? await running : await this.#limited(running, timeLimit);
    this.#endSpan("error" in ending ? ending : undefined);
    reporter.emit("ended", item, now() - startedAt, "error" in ending ? ending.error : undefined);
    return ending;
  }

  /** Ends its span once. A handler whose item was given back may still run. */
  #endSpan(failure: { readonly error: unknown } | undefined): void {
    const span = this.#span;
    this.#span = undefined;
    if (span) this.#worker.reporter.endSpan(span, failure);
  }

  /** The end of a handler that has a time limit: an attempt past it has failed, whatever the handler returns or throws then. */
  #limited(running: Promise<Ending>, timeLimit: number): Promise<Ending> {
    return new Promise((resolve) => {
      let late: Ending | undefined;
      this.#limitTimer = setTimeout(() => {
        const error = new Cancellation("late", `the handler ran longer than ${timeLimit} ms`);
        this.item.abandon(error);
        const ending = { error };
        late = ending;
        this.#limitTimer = setTimeout(() => resolve(ending), UNWIND_MS);
      }, timeLimit);
      running.then((ending) => {
        clearTimeout(this.#limitTimer);
        resolve(late ?? ending);
      });
    });
  }

  async #complete({ result, followUps }: Exclude<Ending, { error: unknown }>): Promise<boolean> {
    this.#state = "completing";
    const { item } = this;
    let completed: boolean;
    try {
      completed = await this.#whileHeld(() => this.#worker.completer.complete(item, result, followUps));
    } catch (error) {
      if (isServerAway(error)) throw error;
      await this.#fail(error); // the item cannot be completed, for example because its result is too large
      return false;
    }
    if (completed) this.#worker.reporter.emit("completed", item);
    else this.#reportLoss();
    return completed;
  }

  /** Releases an item whose handler failed, by the verdict of the handler, or of the policy. */
  async #fail(error: unknown, verdict?: Disposition): Promise<void> {
    const disposition = verdict ?? this.#judge(error);
    let state: Released | undefined;
    try {
      state = await this.#send(disposition);
    } finally {
      this.#logFailure(error, disposition, state);
    }
    this.#reportRelease(state, disposition);
  }

  /** Logs a failed attempt, with what became of the item: undefined if the server did not say. */
  #logFailure(error: unknown, disposition: Disposition, state: Released | undefined): void {
    const { item } = this;
    const { uncounted, delay = 0 } = disposition;
    const dead = state === "dead";
    const isLost = this.#isLost || (state === "lost" && !this.#mayHaveEnded);
    const goesBack = `goes back${uncounted ? " uncounted" : ""} for ${Math.round(delay)} ms`;
    const end = isLost ? "is left to another" : dead ? "is dead" : goesBack;
    const isVerdict = error instanceof DeadLetter || error instanceof Release;
    const level = dead ? "error" : isVerdict ? "info" : "warn";
    const text = `${nameOf(item)} ${isVerdict ? "was ended by its handler" : "failed"} and ${end}`;
    if (isVerdict) this.#worker.reporter.log(level, error.message ? `${text}: ${error.message}` : text);
    else this.#worker.reporter.log(level, `${text}:`, error);
  }

  /** What becomes of the item. If the user's backoff cannot say, it waits for the default time. */
  #judge(error: unknown): Disposition {
    const { attempt } = this.item;
    try {
      return this.#worker.settings.policy.judge(attempt, error);
    } catch (failure) {
      this.#worker.reporter.log("error", `${nameOf(this.item)} waits for the default time:`, failure);
      return { delay: exponentialBackoff()(attempt), error: textOf(error) };
    }
  }

  async #release(disposition: Disposition): Promise<void> {
    this.#reportRelease(await this.#send(disposition), disposition);
  }

  /** Releases the item. Returns what became of it. */
  async #send(disposition: Disposition): Promise<Released> {
    this.#state = "releasing";
    return await this.#whileHeld(() => this.item.release(disposition));
  }

  #reportRelease(state: Released, disposition: Disposition): void {
    const { item } = this;
    const { reporter } = this.#worker;
    if (state === "lost") this.#reportLoss();
    else if (state === "dead") reporter.emit("deadLettered", item, disposition.error);
    else reporter.emit("released", item, disposition.delay ?? 0, disposition.error);
  }

  /** Makes the call that ends an item: in an outage again and again, but only while the lease is held (LQ-WORK-6). */
  async #whileHeld<Answer>(call: () => Promise<Answer>): Promise<Answer> {
    const { health, lastCalls } = this.#worker;
    for (let failures = 1; ; failures += 1) {
      try {
        return await call();
      } catch (error) {
        if (!isServerAway(error) || lastCalls.aborted) throw error;
        if (error instanceof LeaseqError) this.#mayHaveEnded ||= !error.definite;
        health.callFailed(error);
        await pause(failures, lastCalls);
        if (now() >= this.item.heldUntil) throw error;
      }
    }
  }

  /** Reports once that the lease is lost: found by the heartbeat, or by the call that was to end the item. */
  #reportLoss(): void {
    if (this.#isLost || this.#mayHaveEnded) return;
    this.#isLost = true;
    const { reporter } = this.#worker;
    reporter.log("warn", `${nameOf(this.item)} is no longer this worker's`);
    reporter.emit("lost", this.item);
  }
}

/** A handler that runs in a span, as do the follow-ups that it returns. */
function inSpan(span: HandlerSpan, handler: Handler): Handler {
  return (item, context) =>
    span.run(async () => {
      const returned = await handler(item, context);
      if (!(returned instanceof CompleteWith)) return returned;
      const followUps = returned.followUps.map((each) => withSpan(each, each.queue.tracing));
      return new CompleteWith(followUps, returned.result);
    });
}
