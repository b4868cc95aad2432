// Takes the turns of schedules: what a worker does with the items that they are (LQ-JOB-12 to LQ-JOB-15, LQ-JOB-30 to 33).
import { CompleteWith, FailedAttempt } from "../handler.js";
import type { LeasedItem, Queue } from "../queue.js";
import type { FollowUp } from "../requests.js";
import { DeadLetter, Release } from "../retry-policy.js";
import { type Format, write } from "./format.js";
import { optionsOfStage } from "./options.js";
import { readSchedule, type Schedule, type ScheduleState, scheduleQueue, type Turn } from "./schedule.js";
import type { Store } from "./store.js";

/** How long an unknown schedule is left to other workers. */
const PUT_OFF_MS = 60_000;
/** How long a schedule stays without a turn: no program has it. */
const FORGET_MS = 86_400_000;

/** The schedules of an App whose jobs go to queues that its worker listens to. */
export class Scheduler {
  readonly #store: Store;
  readonly #format: Format;
  /** By the name of their queue, then by theirs. */
  readonly #schedules = new Map<string, Map<string, Schedule>>();

  constructor(store: Store, format: Format, schedules: Iterable<Schedule>, queues: readonly string[]) {
    this.#store = store;
    this.#format = format;
    for (const schedule of schedules) {
      if (!queues.includes(schedule.queue)) continue;
      const name = scheduleQueue(schedule.queue);
      const known = this.#schedules.get(name) ?? new Map();
      this.#schedules.set(name, known.set(schedule.name, schedule));
    }
  }

  /** The queues of the schedules. */
  get queues(): Queue[] {
    return [...this.#schedules.keys()].map((name) => this.#store.untraced(name));
  }

  /** Whether an item is a schedule. */
  has(item: LeasedItem): boolean {
    return this.#schedules.has(item.queue.name);
  }

  /** Adds the items of all schedules: a new one starts now, an existing one stays as it is (LQ-JOB-12). */
  async start(): Promise<void> {
    for (const [name, schedules] of this.#schedules) {
      const queue = this.#store.untraced(name);
      const until = await this.#store.serverTime(queue);
      const items = [...schedules.values()].map((schedule) =>
        itemOf(schedule.name, schedule.state({ until, next: undefined }, undefined)),
      );
      await queue.add(items);
    }
  }

  /** Takes a turn: the item is completed, and in the same step the jobs of its slots and the item are added. */
  async turn(item: LeasedItem): Promise<CompleteWith> {
    const name = item.id.toString();
    const state = readSchedule(item.data);
    if (!state) throw new DeadLetter("this is no schedule that can be read here");
    const now = Math.floor(item.deadline / 1000 - item.duration); // the server's
    const schedule = this.#schedules.get(item.queue.name)?.get(name);
    if (!schedule) return this.#putOff(state, now);
    const turn = schedule.turn(state.until, now, await this.#store.isPaused(item.queue, name));
    const after = schedule.state(turn, turn.slots.at(-1) ?? state.last);
    return new CompleteWith([
      ...this.#jobs(schedule, turn, now),
      { ...itemOf(name, after), queue: item.queue, notBefore: turn.due },
    ]);
  }

  #jobs(schedule: Schedule, turn: Turn, now: number): FollowUp[] {
    const stage = schedule.call.stage(this.#format);
    const queue = this.#store.queue(schedule.queue);
    const options = { ...optionsOfStage(stage.add ?? {}), headers: stage.headers };
    return turn.slots.map((slot) => ({
      ...options,
      id: `cron:${schedule.name}:${slot}`,
      data: write({ ...stage.job, enqueued: now, due: slot }, this.#format),
      queue,
    }));
  }

  /** Leaves an unknown schedule to another worker, or drops it (LQ-JOB-33). */
  #putOff(state: ScheduleState, now: number): CompleteWith {
    if (now - state.until >= FORGET_MS) return new CompleteWith([]);
    throw new FailedAttempt(
      { uncounted: true, delay: PUT_OFF_MS },
      new Release("this App has no such schedule"),
    );
  }
}

function itemOf(name: string, state: ScheduleState): { id: string; data: string; maxAttempts: 0 } {
  return { id: name, data: JSON.stringify(state), maxAttempts: 0 };
}
