// Waiting without polling (page 06): check, then block on a list until another client pushes a wake-up, and check again. What to
// wait for is in wait-targets.ts; pool.ts starts the waits.
import { setTimeout as sleep } from "node:timers/promises";
import { onAbort } from "./aborts.js";
import { now } from "./clock.js";
import type { ClusterConnection } from "./cluster.js";
import type { Command } from "./commands.js";
import type { Runner } from "./connection.js";
import type { Argument } from "./encoding.js";
import { AbortError, BadArgumentError, ConnectionError, type LeaseqError } from "./errors.js";
import { BLOCK_GRACE_MS, MIN_BLOCK_MS, WAIT_CAP_MS } from "./scripts.generated.js";

/** The next check is sent this long after the block should end, so that it does not queue behind a block still under way. */
const BLOCK_END_MARGIN_MS = 4;
/** How long an abort waits for a reply that is due, so that what was leased is given back by then. */
const ABORT_GRACE_MS = 250;
/** Errors that end a block and say nothing about the next one (LQ-BLOCK-5). */
const TRANSIENT_BLOCK_ERRORS = new Set(["MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN", "UNBLOCKED"]);

/** What a check found, or in how many milliseconds the next one is due: 0 at once, Infinity never. */
export type CheckResult<Found> = { readonly found: Found } | { readonly dueInMs: number };

/** Something to wait for: how to check for it, and how to block until the next check. */
export interface WaitTarget<Found> {
  check(on: Runner): Promise<CheckResult<Found>>;
  /** The blocking command, without its timeout. */
  readonly block: { readonly name: string; readonly args: readonly Argument[] };
  /** Commands that pass on a wake-up which this waiter took and did not use. */
  readonly settle: readonly Command<unknown>[];
  /** Whether to send `settle` also after something was found. */
  readonly alwaysSettle: boolean;
  /**
   * Undoes a check whose caller has aborted. Without it, what a check did cannot be undone: an abort waits for its reply, and what
   * was found is returned all the same.
   */
  releaseFound?(found: Found): Promise<unknown>;
}

/** How long to wait, and what ends the wait earlier. */
export interface WaitOptions {
  /** Milliseconds. 0 checks once, Infinity waits without limit. */
  timeout?: number | undefined;
  signal?: AbortSignal | null | undefined;
}

/** The signals that end a wait. Not AbortSignal.any: one for each wait would pile up on a long-lived signal. */
export type AbortSignals = readonly AbortSignal[];

/** Where a waiter gets its connections. */
export interface ConnectionProvider {
  readonly shared: Runner;
  /** A connection to block on, for one waiter at a time. */
  acquire(): ClusterConnection;
  /** Takes the connection back and sends `settle` behind a block that may still be under way, as after a wait that `failed`. */
  release(connection: ClusterConnection, settle: readonly Command<unknown>[], failed: boolean): void;
}

/** A check and when it was sent. */
export interface TimedCheck<Found> {
  result: CheckResult<Found>;
  /** On the clock of `now`. */
  sentAt: number;
}

/** Returns the timeout. Throws BadArgumentError if it is no number, before anything is sent. */
export function checkTimeout(timeout: number): number {
  if (typeof timeout === "number" && !Number.isNaN(timeout)) return timeout;
  throw new BadArgumentError(`timeout is a number of milliseconds, not ${timeout}`);
}

/** The signal of the options, if there is one. Throws BadArgumentError if it is none, before anything is sent. */
export function checkSignal({ signal }: WaitOptions): AbortSignals {
  if (signal === undefined || signal === null) return [];
  if (signal instanceof AbortSignal) return [signal];
  throw new BadArgumentError(`signal is an AbortSignal, not ${typeof signal}`);
}

/** Checks, and remembers when. */
export async function checkOnce<Found>(target: WaitTarget<Found>, on: Runner): Promise<TimedCheck<Found>> {
  const sentAt = now();
  return { result: await target.check(on), sentAt };
}

/**
 * Waits until the target is found; undefined when the time is up. Throws AbortError when a signal is aborted, and the error of
 * a check or a block.
 */
export async function waitFor<Found>(
  target: WaitTarget<Found>,
  pool: ConnectionProvider,
  timeout: number,
  signals: AbortSignals,
  first?: TimedCheck<Found>,
): Promise<Found | undefined> {
  const timeoutAt = now() + timeout;
  let connection: ClusterConnection | undefined;
  let found: Found | undefined;
  let failed = false;
  try {
    throwIfAborted(signals);
    let checked = first ?? (await checkOnce(target, pool.shared));
    for (;;) {
      const { result, sentAt } = checked;
      if ("found" in result) {
        found = await unlessAborted(target, result.found, signals);
        return found;
      }
      throwIfAborted(signals);
      if (result.dueInMs > 0) {
        if (now() >= timeoutAt) return undefined;
        // The server gets the block's duration, so the connection is opened before that is computed.
        if (!connection) connection = pool.acquire();
        await connection.open(target.block.args[0]);
        throwIfAborted(signals);
        const blockMs = Math.min(sentAt + Math.min(result.dueInMs, WAIT_CAP_MS), timeoutAt) - now();
        if (blockMs >= MIN_BLOCK_MS) {
          checked = await blockThenCheck(target, connection, blockMs, signals);
          continue;
        }
        await sleep(Math.ceil(Math.max(blockMs, 0)));
      }
      checked = await checkOnce(target, connection ?? pool.shared);
    }
  } catch (error) {
    failed = true;
    throw error;
  } finally {
    if (connection)
      pool.release(connection, found === undefined || target.alwaysSettle ? target.settle : [], failed);
  }
}

/** Returns what a check found. If a signal was aborted meanwhile, it is released where that is possible, and AbortError thrown. */
export async function unlessAborted<Found>(
  target: WaitTarget<Found>,
  found: Found,
  signals: AbortSignals,
): Promise<Found> {
  if (!target.releaseFound || !signals.some((signal) => signal.aborted)) return found;
  await target.releaseFound(found).catch(() => {});
  throw abortError(signals);
}

/** Blocks for `blockMs` or until a wake-up, then checks on the same connection. */
async function blockThenCheck<Found>(
  target: WaitTarget<Found>,
  connection: ClusterConnection,
  blockMs: number,
  signals: AbortSignals,
): Promise<TimedCheck<Found>> {
  const startedAt = now();
  const block = connection
    .sendOnce(
      target.block.name,
      [...target.block.args, (blockMs / 1000).toFixed(3)],
      blockMs + BLOCK_GRACE_MS,
    )
    .then(
      () => undefined,
      (error: LeaseqError) => error,
    );
  await waitForFirst(block, blockMs + BLOCK_END_MARGIN_MS, signals);
  throwIfAborted(signals);
  const timeIsUp = now() - startedAt >= blockMs;
  if (!timeIsUp) {
    const error = await block;
    // A server without memory refuses BLMOVE, though it needs none (6.7). Then the time passes without a block.
    if (error?.code === "OOM") await pause(startedAt + blockMs - now(), signals);
    else if (error && !isTransient(error)) throw error;
    throwIfAborted(signals);
    return await checkOnce(target, connection);
  }
  // The time is up, and the server may not have noticed: a command behind the block makes it check the clock
  // (LQ-BLOCK-8).
  const [error, next] = await Promise.all([block, checkOnce(target, connection)]);
  if (error && error.code !== "OOM" && !isTransient(error) && !("found" in next.result)) throw error;
  return next;
}

/**
 * The end of a wait that runs in the background. An abort does not wait for a server that is silent: then AbortError is thrown, and
 * a wait that leased gives that back once the reply comes.
 */
export function untilAborted<Found>(wait: Promise<Found>, signals: AbortSignals): Promise<Found> {
  return new Promise((resolve, reject) => {
    let timer: NodeJS.Timeout | undefined;
    const leave = onAbort(signals, () => {
      timer = setTimeout(() => reject(abortError(signals)), ABORT_GRACE_MS);
    });
    const end = () => {
      leave();
      clearTimeout(timer);
    };
    wait.finally(end).then(resolve, reject);
  });
}

/** Whether a block that ended with this error may be repeated. */
function isTransient(error: LeaseqError): boolean {
  return TRANSIENT_BLOCK_ERRORS.has(error.code) || error instanceof ConnectionError;
}

/** Lets time pass. Throws AbortError when a signal is aborted. */
export async function pause(timeMs: number, signals: AbortSignals): Promise<void> {
  await waitForFirst(NEVER, timeMs, signals);
  throwIfAborted(signals);
}

export function throwIfAborted(signals: AbortSignals): void {
  if (signals.some((signal) => signal.aborted)) throw abortError(signals);
}

function abortError(signals: AbortSignals): AbortError {
  return new AbortError(signals.find((signal) => signal.aborted)?.reason);
}

/** A promise that stays pending. */
const NEVER = new Promise<never>(() => {});

/** Resolves when the promise does, after `timeMs`, or when a signal is aborted. */
function waitForFirst(promise: Promise<unknown>, timeMs: number, signals: AbortSignals): Promise<void> {
  return new Promise((resolve) => {
    let leave = () => {};
    const done = () => {
      clearTimeout(timer);
      leave();
      resolve();
    };
    const timer = setTimeout(done, Math.max(timeMs, 0));
    leave = onAbort(signals, done);
    if (promise !== NEVER) promise.then(done);
  });
}
