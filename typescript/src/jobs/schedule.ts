// A schedule, and what is to be done of it at a time. Nothing here sends.
import { BadArgumentError } from "../errors.js";
import { QueueKeys } from "../keys.js";
import type { Call } from "./call.js";
import type { Stage } from "./envelope.js";
import { isMap } from "./format.js";
import { isKnownVersion } from "./job-state.js";
import { isOnce } from "./options.js";
import type { Timetable } from "./timetable.js";

const SUFFIX = ".cron";
const MAX_QUEUE_CHARS = 100;
const MAX_NAME_BYTES = 200;
/** With `missed: "none"`: a slot that is seen later than this was missed. */
const ON_TIME_MS = 60_000;
/** The longest time between two turns, so that a changed rule counts soon (LQ-JOB-32). */
const REVIEW_MS = 60_000;
const FIRST_SPAN_MS = 1000;
/** Slots of one turn; if more were missed, the next turn is at once. */
const MAX_SLOTS = 64;

/** Which of several missed slots get a job: the last, all, or none that is more than a minute late. */
export type Missed = "last" | "all" | "none";

/** The work of one turn: these slots get jobs, and all up to `until` are over. `next`: the next slot. */
export interface Turn {
  readonly slots: readonly number[];
  readonly until: number;
  readonly due: number;
  readonly next: number | undefined;
}

/** The data of the item of a schedule. */
export interface ScheduleState {
  readonly v: 1;
  readonly until: number;
  readonly last?: number | undefined;
  readonly next?: number | undefined;
  readonly rule?: string | undefined;
  readonly missed?: string | undefined;
  readonly job?: Stage | undefined;
}

/** A call that is enqueued at the slots of a timetable. */
export class Schedule {
  readonly queue: string;

  /** Throws BadArgumentError. */
  constructor(
    readonly name: string,
    readonly call: Call,
    readonly timetable: Timetable,
    readonly missed: Missed,
  ) {
    const { id, at, queue } = call.options;
    if (id !== undefined || at !== undefined) {
      throw new BadArgumentError(
        "the jobs of a schedule take neither an id nor a time: both come from their slots",
      );
    }
    if (isOnce(call.options)) {
      throw new BadArgumentError(
        "the jobs of a schedule are neither unique nor throttled, as their ids come from their slots: give unique: false and " +
          "throttle: 0 to the schedule",
      );
    }
    if (!["last", "all", "none"].includes(missed)) {
      throw new BadArgumentError(`missed is "last", "all" or "none", not ${JSON.stringify(missed)}`);
    }
    const size = Buffer.byteLength(name);
    if (size === 0 || size > MAX_NAME_BYTES) {
      throw new BadArgumentError(`the name of a schedule is 1 to ${MAX_NAME_BYTES} bytes long, not ${size}`);
    }
    this.queue = queue;
    scheduleQueue(queue);
  }

  /** The state after a turn, or of a new schedule. */
  state(turn: Pick<Turn, "until" | "next">, last: number | undefined): ScheduleState {
    const { timetable, missed, call } = this;
    return {
      v: 1,
      until: turn.until,
      last,
      next: turn.next,
      rule: timetable.rule,
      missed,
      job: call.stage("json"),
    };
  }

  /** The turn to take `now`, when all slots up to `until` are over. Times are the server's (LQ-JOB-30 to LQ-JOB-32). */
  turn(until: number, now: number, isPaused: boolean): Turn {
    const slots = isPaused ? [] : this.#slots(until, now);
    const over = slots.length === MAX_SLOTS ? (slots.at(-1) as number) : Math.max(now, until);
    const next = this.timetable.after(over).next().value ?? undefined;
    const review = Math.max(now, over) + REVIEW_MS;
    return { slots, until: over, due: Math.min(next ?? review, review), next };
  }

  #slots(until: number, now: number): number[] {
    const slots: number[] = [];
    if (this.missed === "all") {
      for (const slot of this.timetable.after(until)) {
        if (slot > now || slots.length === MAX_SLOTS) break;
        slots.push(slot);
      }
      return slots;
    }
    const last = this.#last(until, now);
    const isMissed = last === undefined || (this.missed === "none" && now - last > ON_TIME_MS);
    return isMissed ? [] : [last];
  }

  /** The last slot that is later than `until`, up to `now`: looked for from `now` back, further and further. */
  #last(until: number, now: number): number | undefined {
    for (let span = FIRST_SPAN_MS; ; span *= 2) {
      const from = Math.max(until, now - span);
      let last: number | undefined;
      for (const slot of this.timetable.after(from)) {
        if (slot > now) break;
        last = slot;
      }
      if (last !== undefined || from === until) return last;
    }
  }
}

/** The name of the queue of the schedules whose jobs go to `queue`. Throws BadArgumentError. */
export function scheduleQueue(queue: string): string {
  if (queue.length + SUFFIX.length > MAX_QUEUE_CHARS) {
    throw new BadArgumentError(
      `the name of a queue that has schedules is at most ${MAX_QUEUE_CHARS - SUFFIX.length} characters long`,
    );
  }
  return new QueueKeys(queue + SUFFIX).name;
}

/** Reads the item of a schedule; undefined if it is none, or one of a later version. */
export function readSchedule(data: Buffer): ScheduleState | undefined {
  try {
    const state: unknown = JSON.parse(data.toString());
    return isMap(state) && isKnownVersion(state.v) && Number.isSafeInteger(state.until)
      ? (state as unknown as ScheduleState)
      : undefined;
  } catch {
    return undefined;
  }
}
