// The entry of the job layer: functions by name, and the workers that run them.
import { Client } from "../client.js";
import { BadArgumentError } from "../errors.js";
import type { Handler } from "../item-run.js";
import { QueueKeys } from "../keys.js";
import { refuseUnknown } from "../option-names.js";
import { workerId } from "../presence.js";
import type { Queue } from "../queue.js";
import type { Backoff } from "../retry-policy.js";
import type { Server } from "../server.js";
import type { Worker } from "../worker.js";
import { toSettings, type WorkerOptions } from "../worker-settings.js";
import { type Arguments, Signature } from "./arguments.js";
import type { CallBackoff } from "./backoff.js";
import { Call } from "./call.js";
import { Chain } from "./chain.js";
import type { JobContext } from "./context.js";
import { checkName, Definition, type ErrorClass } from "./definition.js";
import type { Format } from "./format.js";
import { Handle } from "./handle.js";
import { JobFunction } from "./job-function.js";
import { JobPolicy, JobRunner } from "./job-run.js";
import { type CallOptions, DEFAULTS, type Options, withOptions } from "./options.js";
import { Producer } from "./producer.js";
import { type Missed, Schedule } from "./schedule.js";
import { Scheduler } from "./scheduler.js";
import { Schedules } from "./schedules.js";
import type { InputOf, OutputOf, Schema } from "./schema.js";
import { Store } from "./store.js";
import { CronTimetable, IntervalTimetable, type Timetable } from "./timetable.js";

const CONCURRENCY = 8;
/** The options of a plain worker that jobs have instead. */
const PER_JOB = ["timeLimit", "maxAttempts", "backoff", "deadLetterOn"] as const;

const OPTION_NAMES: Readonly<Record<keyof AppOptions, true>> = { group: true, queue: true, format: true };

/** The settings of an App. */
export interface AppOptions {
  /** The group of all its queues. Default: "jobs". */
  group?: string | undefined;
  /** The queue of functions and calls that name none. Default: "default". */
  queue?: string | undefined;
  /** The format in which jobs are written. Default: "json". */
  format?: Format | undefined;
}

/** The options of a function: those of its calls, its schema, and errors after which there is no other attempt. */
export interface FunctionOptions extends Omit<CallOptions, "id" | "at" | "attempt" | "backoff"> {
  /** As of calls, or a function of the number of the attempt that failed. */
  backoff?: CallBackoff | Backoff | undefined;
  /** A schema of zod, valibot, arktype or another library with Standard Schema. The function gets its output. */
  input?: Schema | undefined;
  /**
   * The names of its arguments. An optional argument has a "?" at its end, as in "tax?". The function gets one object, whether a call has them by
   * position or by name. Without this, it takes one argument, or those by name as one object.
   */
  parameters?: readonly string[] | undefined;
  /** Errors that make the job a dead letter at once, as `DeadLetter` does. */
  deadLetterOn?: readonly ErrorClass[] | undefined;
}

/** The options of a worker of an App. Each job has its own time limit, attempts and backoff. */
export interface JobWorkerOptions extends Omit<WorkerOptions, (typeof PER_JOB)[number]> {
  /** The names of its queues, the first one first. Default: those of the App and its functions. */
  queues?: readonly string[] | undefined;
}

/** The options of a schedule: those of its jobs, which keep no result unless `keep` is given. */
export interface ScheduleOptions<Input = unknown> extends Omit<CallOptions, "id" | "at"> {
  /** The name of the schedule. Default: that of the function. */
  name?: string | undefined;
  /** The input of the function. */
  input?: Input | Arguments | undefined;
  /** If no worker ran at some slots: "last" runs the last of them, "all" runs each, "none" runs none that is more than a minute late. Default: "last". */
  missed?: Missed | undefined;
}

/** The options of a schedule; `input` can be left out if it may be undefined. */
type Scheduling<Input, More = unknown> = undefined extends Input
  ? [options?: ScheduleOptions<Input> & More]
  : [options: ScheduleOptions<Input> & More & { input: Input | Arguments }];

/** Functions whose calls run as jobs in other processes, and the workers that run them. */
export class App {
  readonly #client: Client;
  readonly #ownsClient: boolean;
  readonly #defaults: Options;
  readonly #functions = new Map<string, Definition>();
  readonly #schedules: Schedule[] = [];
  readonly #producer: Producer;
  /** The schedules that the server has. */
  readonly schedules: Schedules;

  /** Takes a client, which stays open when the App is closed, or the arguments of a `Client`. */
  constructor(server: Client | Server | readonly Server[], options: AppOptions = {}) {
    if ("logger" in options || "replyTimeout" in options || "tracing" in options) {
      throw new BadArgumentError(
        "logger, replyTimeout and tracing are options of the client: new App(new Client(server, { logger }))",
      );
    }
    refuseUnknown(options, OPTION_NAMES, "an App has no option");
    const { group = "jobs", queue = "default", format = "json" } = options;
    if (format !== "json" && format !== "msgpack") {
      throw new BadArgumentError(`format is "json" or "msgpack", not ${JSON.stringify(format)}`);
    }
    new QueueKeys(queue, group);
    this.#ownsClient = !(server instanceof Client);
    this.#client = server instanceof Client ? server : new Client(server);
    this.#defaults = { ...DEFAULTS, queue };
    this.#producer = new Producer(new Store(this.#client, group), format);
    this.schedules = new Schedules(this.#producer, this.#schedules, () => this.queues);
  }

  /**
   * Defines a function: workers of this App run its jobs. It gets one value. What it returns is kept as the result. Throws
   * BadArgumentError if there is one of this name.
   */
  define<S extends Schema, Result>(
    name: string,
    options: FunctionOptions & { input: S },
    run: (input: OutputOf<S>, context: JobContext) => Result,
  ): JobFunction<InputOf<S>, Awaited<Result>>;
  define<Input, Result>(
    name: string,
    options: FunctionOptions & { input?: undefined },
    run: (input: Input, context: JobContext) => Result,
  ): JobFunction<Input, Awaited<Result>>;
  define<Input, Result>(
    name: string,
    run: (input: Input, context: JobContext) => Result,
  ): JobFunction<Input, Awaited<Result>>;
  define(
    name: string,
    options: FunctionOptions | Definition["run"],
    run?: Definition["run"],
    // biome-ignore lint/suspicious/noExplicitAny: each overload says what it is
  ): JobFunction<any, any> {
    const [given, called] = typeof options === "function" ? [{}, options] : [options, run];
    if (typeof called !== "function")
      throw new BadArgumentError(
        `define takes a name, options and a function, in this order, not ${typeof called} as the function`,
      );
    if (typeof options === "function" && run !== undefined) {
      throw new BadArgumentError(
        "define takes a name, options and a function, in this order: options come before the function",
      );
    }
    if (this.#functions.has(checkName(name))) {
      throw new BadArgumentError(
        `there is a function ${JSON.stringify(name)} already: give one of them another name`,
      );
    }
    const { input: schema, parameters, deadLetterOn = [], ...callOptions } = given as FunctionOptions;
    const own = withOptions(this.#defaults, callOptions);
    const definition = new Definition(new Signature(name, parameters), own, schema, deadLetterOn, called);
    this.#functions.set(name, definition);
    return new JobFunction(this.#producer, definition);
  }

  /**
   * Enqueues a function at the times of a line of crontab: minute, hour, day of month, month, day of week, and a second before them if
   * there are six; or `@hourly` and the like. `timeZone`: by default UTC. Every worker that listens to its queue and has the schedule
   * takes part; a slot gets one job. Throws BadArgumentError.
   */
  cron<Input>(
    called: JobFunction<Input>,
    line: string,
    ...[options]: Scheduling<Input, { timeZone?: string | undefined }>
  ): void {
    const { timeZone = "UTC", ...rest } = options ?? {};
    this.#schedule(called, new CronTimetable(line, timeZone), rest);
  }

  /** Enqueues a function at the multiples of an interval in ms since 1970; otherwise as `cron`. */
  every<Input>(called: JobFunction<Input>, interval: number, ...[options]: Scheduling<Input>): void {
    this.#schedule(called, new IntervalTimetable(interval), options ?? {});
  }

  #schedule<Input>(called: JobFunction<Input>, timetable: Timetable, options: ScheduleOptions<Input>): void {
    if (!(called instanceof JobFunction)) {
      throw new BadArgumentError(
        "a schedule needs what app.define or app.function(name) returned, not a name",
      );
    }
    const { name = called.name, input, missed = "last", keep = 0, ...callOptions } = options;
    const call = new Call(called.callee, input, { ...callOptions, keep });
    const schedule = new Schedule(name, call, timetable, missed);
    call.stage("json"); // refused here, not by the worker
    if (this.#schedules.some((one) => one.name === name && one.queue === schedule.queue)) {
      throw new BadArgumentError(
        `there is a schedule ${JSON.stringify(name)} already: give one of them another name`,
      );
    }
    this.#schedules.push(schedule);
  }

  /** Returns a function by its name, which another program may define, in any language. */
  function<Input = unknown, Result = unknown>(name: string): JobFunction<Input, Result> {
    const callee = this.#functions.get(checkName(name)) ?? {
      name,
      options: this.#defaults,
      signature: new Signature(name, undefined),
    };
    return new JobFunction(this.#producer, callee);
  }

  /** Enqueues a call of a function by its name: as `App.function(name).enqueue`. */
  async enqueue(name: string, input?: unknown, options?: CallOptions): Promise<Handle> {
    return await this.function(name).enqueue(input, options);
  }

  /** Enqueues calls, in one call of the server for each queue and 256 calls. Returns a handle for each, in order. */
  async enqueueMany<Result>(calls: readonly Call<Result>[]): Promise<Handle<Result>[]> {
    const enqueued = await this.#producer.enqueue(calls);
    return enqueued.map(
      ({ id, added }, index) =>
        new Handle(this.#producer.store, id, calls[index]?.options.queue ?? "", added),
    );
  }

  /** Starts a chain of jobs: `app.chain(fetch.call(url)).next(parse).next(store).enqueue()`. */
  chain<Result>(first: Call<Result>): Chain<Result> {
    return new Chain<Result>(this.#producer, first);
  }

  /** Returns a handle of a job that was enqueued before. `queue`: default that of the App. */
  handle<Result = unknown>(id: string, queue: string = this.#defaults.queue): Handle<Result> {
    return new Handle(this.#producer.store, id, queue, undefined);
  }

  /** Returns the `Queue` that carries the jobs, for its dead letters, statistics and limits. */
  queue(name: string = this.#defaults.queue): Queue {
    return this.#producer.store.queue(name);
  }

  /** The names of the queues that it knows: its own and those of its functions. */
  get queues(): string[] {
    const ofFunctions = [...this.#functions.values()].map(({ options }) => options.queue);
    return [...new Set([this.#defaults.queue, ...ofFunctions])];
  }

  /** Returns a worker that runs the jobs of these functions. Call its `run`. */
  worker(options: JobWorkerOptions = {}): Worker {
    const { queues: names = this.queues, ...rest } = options;
    const ofJobs = PER_JOB.find((name) => name in rest);
    if (ofJobs)
      throw new BadArgumentError(`a worker of jobs has no option "${ofJobs}": each job has its own`);
    const { store } = this.#producer;
    const { logger, worker } = store.parts;
    const id = workerId();
    const runner = new JobRunner(store, this.#functions, id, logger);
    const settings = toSettings({ ...rest, concurrency: rest.concurrency ?? CONCURRENCY });
    const scheduler = new Scheduler(store, this.#producer.format, this.#schedules, names);
    const ofSchedules = scheduler.queues;
    const queues = [...ofSchedules, ...[...new Set(names)].map((name) => store.queue(name))];
    const handler: Handler = (item, context) =>
      scheduler.has(item) ? scheduler.turn(item) : runner.run(item, context);
    const policy = new JobPolicy(id);
    const prepare = () => scheduler.start();
    return worker(queues, handler, { ...settings, id, policy, prepare, urgentQueues: ofSchedules.length });
  }

  /** Closes the client that it opened, and with it its workers and waits. */
  async close(): Promise<void> {
    if (this.#ownsClient) await this.#client.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
