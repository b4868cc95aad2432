// What a worker does with one job: it reads the job, runs its function, and says how the item ends. app.ts gives it to the worker.
import type { AddOptions } from "../codecs.generated.js";
import { BadArgumentError, TooLargeError } from "../errors.js";
import {
  CompleteWith,
  type Disposition,
  FailedAttempt,
  type HandlerContext,
  isUnfinished,
} from "../handler.js";
import type { Logger } from "../logger.js";
import type { LeasedItem } from "../queue.js";
import type { FollowUp } from "../requests.js";
import { DeadLetter, exponentialBackoff, MAX_DELAY_MS, Release, RetryPolicy } from "../retry-policy.js";
import { Arguments } from "./arguments.js";
import { delayAfter } from "./backoff.js";
import type { JobContext } from "./context.js";
import type { Definition } from "./definition.js";
import { argumentsOf, type Envelope, MAX_COPY_BYTES, readEnvelope, type Stage } from "./envelope.js";
import { BadEnvelopeError, JobTimeout } from "./errors.js";
import { failureText } from "./failure.js";
import { checkValue, formatOf, write } from "./format.js";
import { optionsOfStage, timerOf } from "./options.js";
import { ProgressReporter } from "./progress.js";
import type { Store } from "./store.js";
import { withinLimit } from "./time-limit.js";
import { UnknownFunctions } from "./unknown-functions.js";

/** Bytes of a report as JSON. */
const MAX_REPORT_BYTES = 4096;

/** A job that is running. */
interface Running {
  readonly item: LeasedItem;
  readonly job: Envelope;
  readonly definition: Definition;
  readonly attempt: number;
  /** When the attempt started, in ms since 1970. */
  readonly started: number;
}

/** Runs the jobs of one worker. */
export class JobRunner {
  readonly #store: Store;
  readonly #functions: ReadonlyMap<string, Definition>;
  readonly #worker: string;
  readonly #progress: ProgressReporter;
  readonly #unknown: UnknownFunctions;

  constructor(store: Store, functions: ReadonlyMap<string, Definition>, worker: string, logger: Logger) {
    this.#store = store;
    this.#functions = functions;
    this.#worker = worker;
    this.#progress = new ProgressReporter(store, worker);
    this.#unknown = new UnknownFunctions(worker, logger);
  }

  /** Runs a job. Throws FailedAttempt if it fails. */
  async run(item: LeasedItem, context: HandlerContext): Promise<CompleteWith> {
    const started = Date.now();
    const { job, definition, input } = await this.#prepare(item, started);
    const attempt = item.attempt + (job.attempt ?? 1) - 1;
    const running = { item, job, definition, attempt, started };
    this.#progress.start(item, started);
    let returned: unknown;
    let hasFailed = true;
    try {
      returned = await this.#call(running, input, context);
      hasFailed = false;
    } catch (error) {
      throw this.#failed(running, error);
    } finally {
      this.#progress.end(item, hasFailed);
    }
    try {
      return this.#ending(running, returned);
    } catch (error) {
      throw this.#dead(error, started);
    }
  }

  /** The function and its input. Throws FailedAttempt for a job that cannot run (LQ-JOB-7, LQ-JOB-42). */
  async #prepare(
    item: LeasedItem,
    started: number,
  ): Promise<{ job: Envelope; definition: Definition; input: unknown }> {
    try {
      const job = readEnvelope(item.data);
      const definition = this.#functions.get(job.function);
      if (!definition) {
        throw await this.#unknown.refusal(item, job.function, [...this.#functions.keys()].sort());
      }
      const { args, kwargs } = argumentsOf(job);
      return { job, definition, input: await definition.accepts(new Arguments(args, kwargs)) };
    } catch (error) {
      throw error instanceof FailedAttempt ? error : this.#dead(error, started);
    }
  }

  /** Calls the function. */
  async #call(running: Running, input: unknown, context: HandlerContext): Promise<unknown> {
    const { job, definition } = running;
    const limit = timerOf(job.timeout ?? definition.options.timeLimit);
    const isVerdict = (error: unknown) => error instanceof DeadLetter || error instanceof Release;
    return await withinLimit(
      limit,
      context.signal,
      async (signal) => {
        const returned = await definition.run(input, this.#context(running, context, signal));
        if (isUnfinished(returned)) {
          throw new TypeError(`${definition.name} returned a generator or promises that were never awaited`);
        }
        return returned;
      },
      isVerdict,
    );
  }

  #context(running: Running, context: HandlerContext, signal: AbortSignal): JobContext {
    const { item, job, definition, attempt } = running;
    const { enqueued = 0, due = enqueued } = job;
    return {
      id: item.id.toString(),
      function: definition.name,
      queue: item.queue.name,
      attempt,
      enqueued,
      due,
      headers: item.headers,
      token: item.token,
      worker: this.#worker,
      signal,
      stopping: context.stopping,
      progress: (done, total) => {
        this.#progress.report(item, { done, total });
        context.progress({ done, total });
      },
      report: (value) => {
        const progress = copyOf(value);
        this.#progress.report(item, { progress });
        context.progress(progress);
      },
    };
  }

  /** The end of a job whose function returned. Throws if what it returned cannot be written (LQ-JOB-61). */
  #ending(running: Running, returned: unknown): CompleteWith {
    const { item, job, started } = running;
    const format = formatOf(item.data);
    const [stage, ...rest] = job.then ?? [];
    if (item.keep !== undefined || stage)
      checkValue(returned ?? null, format, `the result of ${job.function}`);
    const result =
      item.keep === undefined
        ? undefined
        : write(
            {
              v: 1,
              result: returned ?? undefined,
              started,
              ended: Date.now(),
              worker: this.#worker,
              job: item.data.length <= MAX_COPY_BYTES ? job : undefined,
            },
            format,
          );
    return new CompleteWith(stage ? [this.#followUp(item, stage, rest, returned ?? null)] : [], result);
  }

  /** The next stage of a chain, whose first argument is what this one returned (LQ-JOB-16, LQ-JOB-27). */
  #followUp(item: LeasedItem, stage: Stage, rest: readonly Stage[], returned: unknown): FollowUp {
    if (stage.id === undefined) throw new BadEnvelopeError("the next stage of the chain has no id");
    const { args } = argumentsOf(stage.job);
    const options: Partial<AddOptions> = optionsOfStage(stage.add ?? {});
    const now = Date.now();
    const job = {
      ...stage.job,
      args: [returned, ...args],
      enqueued: now,
      due: options.delay ? now + options.delay : undefined,
      // biome-ignore lint/suspicious/noThenProperty: the name of the specification
      then: rest.length > 0 ? rest : undefined,
    };
    return {
      ...options,
      id: stage.id,
      data: write(job, formatOf(item.data)),
      headers: stage.headers,
      queue: this.#store.queue(stage.queue),
    };
  }

  /** What becomes of a job whose function threw. The script says whether it was the last attempt (LQ-JOB-21). */
  #failed({ job, definition, attempt, started }: Running, error: unknown): FailedAttempt {
    const asked = error instanceof Release ? error : undefined;
    const isFinal = definition.deadLetterOn.some((kind) => error instanceof kind);
    if (error instanceof DeadLetter || (isFinal && !asked && !(error instanceof JobTimeout))) {
      return this.#dead(error, started);
    }
    if (asked?.uncounted) {
      return this.#attempt({ uncounted: true, ...delayOf(usable(asked.delay) ?? 0) }, error, started);
    }
    const delay = usable(asked?.delay) ?? delayAfter(attempt, job, definition.options.backoff);
    return this.#attempt(delayOf(delay), error, started);
  }

  /** The end of a job for which there is no other attempt. */
  #dead(error: unknown, started: number): FailedAttempt {
    return this.#attempt({ dead: true }, error, started);
  }

  #attempt(disposition: Disposition, error: unknown, started: number): FailedAttempt {
    const text = failureText(error, { worker: this.#worker, started });
    return new FailedAttempt({ ...disposition, error: text }, error);
  }
}

/** What becomes of a job that returned and cannot be completed. A result that the queue does not take would be the same again. */
export class JobPolicy extends RetryPolicy {
  readonly #worker: string;

  constructor(worker: string) {
    // Each job has its own attempts, and the script counts them.
    super(0, exponentialBackoff(), [TooLargeError]);
    this.#worker = worker;
  }

  override judge(attempt: number, error: unknown): Disposition {
    return { ...super.judge(attempt, error), error: failureText(error, { worker: this.#worker }) };
  }
}

/** A delay that a function chose, unless no item can have it. */
function usable(delay: number | undefined): number | undefined {
  return delay !== undefined && delay >= 0 && delay <= MAX_DELAY_MS ? delay : undefined;
}

const delayOf = (delay: number): Disposition => (delay > 0 ? { delay } : {});

/** The copy of a report as it is read: what the function changes later does not change it. Throws BadArgumentError. */
function copyOf(value: unknown): unknown {
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (error) {
    throw new BadArgumentError(`a report is a value of JSON: ${(error as Error).message}`);
  }
  if (text === undefined || Buffer.byteLength(text) > MAX_REPORT_BYTES) {
    throw new BadArgumentError(
      `a report is a value of JSON of at most ${MAX_REPORT_BYTES} bytes; store longer ones elsewhere, and report where`,
    );
  }
  return JSON.parse(text);
}
