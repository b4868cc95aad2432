import { setMaxListeners } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import type { Call } from "./commands.js";
import type { Server } from "./connection.js";
import { Heartbeats } from "./heartbeat.js";
import { type Address, REGISTRY } from "./keys.js";
import { Places, Route } from "./route.js";
import { WAIT_CAP_MS } from "./scripts.generated.js";
import { type Aim, type Begun, type Lanes, now, waitFor } from "./waiting.js";

/** Connections to block on that are kept for the next waiter. */
const MOST_IDLE = 16;
/** After so long a queue is entered in the registry once more: a server that lost it is told again. */
const ENTER_AGAIN_MS = 300_000;
/** How long closing waits for a queue to be entered. */
const ENTER_PATIENCE_MS = 1000;

/** The shared connection, that of heartbeats, those that waiters block on, and what goes on in the background. */
export class Connections implements Lanes {
  readonly shared: Route;
  /** Where leases are extended: an extension is given up soon, and its connection with it. */
  readonly beats: Route;
  readonly heartbeats = new Heartbeats();
  readonly #replyTimeout: number;
  readonly #make: () => Route;
  readonly #closing = new AbortController();
  #idle: Route[] = [];
  readonly #leaving = new Map<Route, readonly Call<unknown>[]>();
  readonly #background = new Set<Promise<unknown>>();
  /** When each queue was last entered in the registry. */
  readonly #entered = new Map<string, number>();

  constructor(given: readonly Server[], replyTimeout: number) {
    const places = new Places(given);
    this.#replyTimeout = replyTimeout;
    this.#make = () => new Route(places, replyTimeout);
    this.shared = this.#make();
    this.beats = this.#make();
    // Every waiter listens.
    setMaxListeners(0, this.#closing.signal);
  }

  take(): Route {
    return this.#idle.pop() ?? this.#make();
  }

  /** Aborted when the client is closed. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /** A connection of somebody's own, who closes it. */
  apart(): Route {
    return this.#make();
  }

  leave(lane: Route, settle: readonly Call<unknown>[], failed: boolean): void {
    // With nothing to settle behind it, nobody would know when the block is over, and the next one wait for that.
    if (failed && settle.length === 0) {
      lane.close();
      return;
    }
    if (this.#closing.signal.aborted) {
      lane.close();
      this.#settleElsewhere(settle);
      return;
    }
    // Behind the block that may still be under way on this connection, so that none is given an element afterwards.
    this.#leaving.set(lane, settle);
    this.inBackground(
      Promise.all(settle.map((call) => lane.run(call, 2 * WAIT_CAP_MS))).finally(() => {
        if (!this.#leaving.delete(lane)) return;
        if (this.#idle.length < MOST_IDLE) this.#idle.push(lane);
        else lane.close();
      }),
    );
  }

  /** Waits until the time is up, a signal is aborted or the client is closed. */
  wait<Found>(
    aim: Aim<Found>,
    timeout: number,
    signals: readonly (AbortSignal | undefined)[],
    first?: Begun<Found>,
  ): Promise<Found | undefined> {
    const all = [...signals, this.#closing.signal].filter((signal) => signal !== undefined);
    const waiting = waitFor(aim, this, timeout, all, first);
    this.inBackground(waiting);
    return waiting;
  }

  /** Keeps a queue in the registry, after a call that added or leased. No call waits for it or fails by it (LQ-REGISTRY-3). */
  enter(at: Address): void {
    const last = this.#entered.get(at.entry);
    if (last !== undefined && now() - last < ENTER_AGAIN_MS) return;
    this.#entered.set(at.entry, now());
    // Its reply may take as long as every other: those of the calls on the same connection come behind it.
    const entered = this.shared.follow("SADD", [REGISTRY, at.entry], this.#replyTimeout);
    this.inBackground(Promise.race([entered, sleep(ENTER_PATIENCE_MS, undefined, { ref: false })]));
  }

  /** For what nobody waits for and whose errors are worth none: `close` lets it end. */
  inBackground(task: Promise<unknown>): void {
    const ended = task.catch(() => {}).finally(() => this.#background.delete(ended));
    this.#background.add(ended);
  }

  async close(): Promise<void> {
    this.#closing.abort(new Error("the client is closed"));
    // Not worth up to 4 s of blocks that end: their waiters' wake-ups are passed on as well as can be.
    for (const [lane, settle] of this.#leaving) {
      this.#leaving.delete(lane);
      lane.close();
      this.#settleElsewhere(settle);
    }
    while (this.#background.size > 0) await Promise.all(this.#background);
    for (const lane of this.#idle) lane.close();
    this.#idle = [];
    this.shared.close();
    this.beats.close();
  }

  #settleElsewhere(settle: readonly Call<unknown>[]): void {
    for (const call of settle) this.inBackground(this.shared.run(call));
  }
}
