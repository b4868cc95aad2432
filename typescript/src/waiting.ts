// Waiting without polling (page 06): look, and block on a list until somebody says that looking again is worth it.
import { setTimeout as sleep } from "node:timers/promises";
import type { Call } from "./commands.js";
import type { Runner } from "./connection.js";
import { AbortError, BadArgumentError, ConnectionError, type LeaseqError } from "./errors.js";
import type { Route } from "./route.js";
import { BLOCK_GRACE_MS, MIN_BLOCK_MS, WAIT_CAP_MS } from "./scripts.generated.js";
import type { Word } from "./wire.js";

/** How long behind the end of a block the next look is sent, so that it does not wait for a block that is not over. */
const BEHIND_MS = 4;
/** Ends of a block that say nothing about the next one (LQ-BLOCK-5). */
const PASSING = new Set(["MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN", "UNBLOCKED"]);

export type Look<Found> = { readonly found: Found } | { readonly pause: number };

/** What is waited for. */
export interface Aim<Found> {
  look(on: Runner): Promise<Look<Found>>;
  /** The command to block with, its time to be added. */
  readonly block: { readonly name: string; readonly args: readonly Word[] };
  /** What passes on a wake-up that this waiter may have taken and does not follow. */
  readonly settle: readonly Call<unknown>[];
  /** Whether to pass it on also after something was found. */
  readonly settleWhenFound: boolean;
  /** Gives back what a look brought to somebody who is gone; without it, what was found is answered all the same. */
  giveBack?(found: Found): Promise<unknown>;
}

/** How long to wait, and what ends it before that. */
export interface Patience {
  /** Milliseconds; 0 looks once, Infinity waits for ever. */
  timeout?: number;
  signal?: AbortSignal | undefined;
}

/** The signals that end a wait. Not AbortSignal.any: one for each wait on a signal that lives long adds up. */
export type Signals = readonly AbortSignal[];

/** Where a waiter finds connections. */
export interface Lanes {
  readonly shared: Runner;
  /** Connections to block on, for one waiter at a time. */
  take(): Route;
  /** Settles behind a block that may still be under way, as after a wait that `failed`, and takes the connection back. */
  leave(lane: Route, settle: readonly Call<unknown>[], failed: boolean): void;
}

export interface Begun<Found> {
  look: Look<Found>;
  /** When it was sent. */
  at: number;
}

/** Checks before anything is sent what a wait needs. Throws BadArgumentError. */
export function checkedTimeout(timeout: number): number {
  if (typeof timeout === "number" && !Number.isNaN(timeout)) return timeout;
  throw new BadArgumentError(`timeout is a number of milliseconds, not ${timeout}`);
}

export const now = (): number => performance.now();

export async function lookOnce<Found>(aim: Aim<Found>, on: Runner): Promise<Begun<Found>> {
  const at = now();
  return { look: await aim.look(on), at };
}

/** Undefined when the time is up. Throws AbortError when a signal is aborted, and what a look or a block threw. */
export async function waitFor<Found>(
  aim: Aim<Found>,
  lanes: Lanes,
  timeout: number,
  signals: Signals,
  first?: Begun<Found>,
): Promise<Found | undefined> {
  const giveUp = now() + timeout;
  let lane: Route | undefined;
  let found: Found | undefined;
  let failed = false;
  try {
    throwIfAborted(signals);
    let begun = first ?? (await lookOnce(aim, lanes.shared));
    for (;;) {
      const { look, at } = begun;
      if ("found" in look) {
        if (aim.giveBack && signals.some((signal) => signal.aborted)) {
          await aim.giveBack(look.found).catch(() => {});
          throwIfAborted(signals);
        }
        found = look.found;
        return found;
      }
      throwIfAborted(signals);
      if (look.pause > 0) {
        if (now() >= giveUp) return undefined;
        // The block's time is told to the server, so a connection is opened before it is reckoned.
        if (!lane) lane = lanes.take();
        await lane.open(aim.block.args[0]);
        throwIfAborted(signals);
        const pause = Math.min(at + Math.min(look.pause, WAIT_CAP_MS), giveUp) - now();
        if (pause >= MIN_BLOCK_MS) {
          begun = await blockThenLook(aim, lane, pause, signals);
          continue;
        }
        await sleep(Math.ceil(Math.max(pause, 0)));
      }
      begun = await lookOnce(aim, lane ?? lanes.shared);
    }
  } catch (error) {
    failed = true;
    throw error;
  } finally {
    if (lane) lanes.leave(lane, found === undefined || aim.settleWhenFound ? aim.settle : [], failed);
  }
}

async function blockThenLook<Found>(
  aim: Aim<Found>,
  lane: Route,
  pause: number,
  signals: Signals,
): Promise<Begun<Found>> {
  const began = now();
  const block = lane
    .command(aim.block.name, [...aim.block.args, (pause / 1000).toFixed(3)], pause + BLOCK_GRACE_MS)
    .then(
      () => undefined,
      (error: LeaseqError) => error,
    );
  await firstOf(block, pause + BEHIND_MS, signals);
  throwIfAborted(signals);
  const over = now() - began >= pause;
  if (!over) {
    const error = await block;
    // BLMOVE is refused on a server without memory, though it needs none (6.5). So the time passes without it.
    if (error?.code === "OOM") await firstOf(NEVER, began + pause - now(), signals);
    else if (error && !isPassing(error)) throw error;
    throwIfAborted(signals);
    return await lookOnce(aim, lane);
  }
  // The time is up, and the server may not have noticed: a command behind the block makes it look at the clock
  // (LQ-BLOCK-8).
  const [error, next] = await Promise.all([block, lookOnce(aim, lane)]);
  if (error && error.code !== "OOM" && !isPassing(error) && !("found" in next.look)) throw error;
  return next;
}

function isPassing(error: LeaseqError): boolean {
  return PASSING.has(error.code) || error instanceof ConnectionError;
}

function throwIfAborted(signals: Signals): void {
  const aborted = signals.find((signal) => signal.aborted);
  if (aborted) throw new AbortError(aborted.reason);
}

const NEVER = new Promise<never>(() => {});

/** Resolves when the promise does, the time is over or a signal is aborted. */
function firstOf(promise: Promise<unknown>, time: number, signals: Signals): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      for (const signal of signals) signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, Math.max(time, 0));
    for (const signal of signals) signal.addEventListener("abort", done);
    if (promise !== NEVER) promise.then(done);
  });
}
