// The schedules that a server has: listed, paused, resumed and triggered. app.ts has it as `schedules`.
import { BadArgumentError } from "../errors.js";
import { randomId } from "../item-id.js";
import type { Queue } from "../queue.js";
import { MAX_ENTRIES } from "../scripts.generated.js";
import { write } from "./format.js";
import { Handle } from "./handle.js";
import { optionsOfStage } from "./options.js";
import type { Producer } from "./producer.js";
import { readSchedule, type Schedule, type ScheduleState, scheduleQueue } from "./schedule.js";

/** How long the result of a triggered job is kept if its schedule keeps none: its id was asked for. */
const TRIGGERED_KEEP_MS = 86_400_000;

/** A schedule as the server has it. Times are milliseconds since 1970. */
export interface ScheduleInfo {
  readonly name: string;
  /** The queue of its jobs. */
  readonly queue: string;
  /** A line of crontab and its time zone, or an interval. */
  readonly rule: string;
  readonly missed: string;
  /** The name of the function that its jobs call. */
  readonly function: string;
  readonly paused: boolean;
  /** The last slot that got a job. */
  readonly last: number | undefined;
  /** The next slot. */
  readonly next: number | undefined;
}

interface Stored {
  readonly name: string;
  readonly state: ScheduleState;
}

/**
 * The schedules on the server. A worker writes those of its App there when it starts. `queue` is that of their jobs: by default that
 * of the App's one schedule of this name, else the App's. `pause`, `resume` and `trigger` throw BadArgumentError if there is none.
 */
export class Schedules {
  readonly #producer: Producer;
  readonly #declared: readonly Schedule[];
  readonly #queues: () => readonly string[];

  /** `queues`: those of the App, its own first. */
  constructor(producer: Producer, declared: readonly Schedule[], queues: () => readonly string[]) {
    this.#producer = producer;
    this.#declared = declared;
    this.#queues = queues;
  }

  /** Returns the schedules of one queue of jobs, or of all that the App knows; up to 768 each. */
  async list(queue?: string): Promise<ScheduleInfo[]> {
    const { store } = this.#producer;
    const found: ScheduleInfo[] = [];
    for (const name of queue === undefined ? this.#queues() : [queue]) {
      const ofSchedules = store.queue(scheduleQueue(name));
      const stored = await this.#stored(ofSchedules);
      const paused = await store.arePaused(
        ofSchedules,
        stored.map((one) => one.name),
      );
      found.push(...stored.map((one, index) => infoOf(one, name, paused[index] ?? false)));
    }
    return found;
  }

  /** Pauses a schedule: its slots pass without jobs, on all workers. */
  async pause(name: string, queue?: string): Promise<void> {
    const { ofSchedules } = await this.#one(name, queue);
    await this.#producer.store.setPaused(ofSchedules, name, true);
  }

  /** Resumes a schedule with its next slot. */
  async resume(name: string, queue?: string): Promise<void> {
    const { ofSchedules } = await this.#one(name, queue);
    await this.#producer.store.setPaused(ofSchedules, name, false);
  }

  /** Enqueues a job of a schedule now, in addition to its slots. Its result is kept for a day, unless the schedule says for how long. */
  async trigger(name: string, queue?: string): Promise<Handle> {
    const stage = (await this.#one(name, queue)).state.job;
    if (!stage) throw new BadArgumentError(`schedule ${JSON.stringify(name)} does not say what its jobs are`);
    const options = optionsOfStage(stage.add ?? {});
    const enqueued = Date.now();
    const job = { ...stage.job, enqueued, due: options.delay ? enqueued + options.delay : undefined };
    const id = randomId();
    const data = write(job, this.#producer.format);
    const item = { keep: TRIGGERED_KEEP_MS, ...options, id, data, headers: stage.headers };
    await this.#producer.store.queue(stage.queue).add(item);
    return new Handle(this.#producer.store, id, stage.queue, true);
  }

  async #one(name: string, queue?: string): Promise<{ ofSchedules: Queue; state: ScheduleState }> {
    const { store } = this.#producer;
    const ofSchedules = store.queue(scheduleQueue(queue ?? this.#queueOf(name)));
    const [data] = await store.data(ofSchedules, [name]);
    const state = data && readSchedule(data);
    if (state) return { ofSchedules, state };
    const known = (await this.#stored(ofSchedules)).map((one) => one.name).join(", ") || "none";
    throw new BadArgumentError(
      `there is no schedule ${JSON.stringify(name)} in queue ${ofSchedules.name}: it has ${known}; a worker adds its schedules when it starts`,
    );
  }

  #queueOf(name: string): string {
    const declared = this.#declared.filter((schedule) => schedule.name === name);
    return (declared.length === 1 ? declared[0]?.queue : this.#queues()[0]) as string;
  }

  async #stored(queue: Queue): Promise<Stored[]> {
    const found = new Set<string>();
    // In the order of a turn: a schedule that has one meanwhile is in one of the lists when it is looked at.
    for (const state of ["delayed", "ready", "leased", "delayed"] as const) {
      const { items } = await queue.listItems(state, { limit: MAX_ENTRIES });
      for (const { id } of items) found.add(id.toString());
    }
    const names = [...found].sort();
    const data = await this.#producer.store.data(queue, names);
    return names.flatMap((name, index) => {
      const state = data[index] && readSchedule(data[index]);
      return state ? [{ name, state }] : [];
    });
  }
}

function infoOf({ name, state }: Stored, queue: string, paused: boolean): ScheduleInfo {
  const { rule = "", missed = "", last, next } = state;
  return { name, queue, rule, missed, function: state.job?.job.function ?? "", paused, last, next };
}
