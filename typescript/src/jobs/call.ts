// A call of a function, ready to be enqueued.
import { randomId } from "../item-id.js";
import type { NewItem } from "../requests.js";
import { Arguments, type Signature } from "./arguments.js";
import { backoffMembers } from "./backoff.js";
import type { Envelope, Stage } from "./envelope.js";
import { checkValue, copied, type Format, write } from "./format.js";
import { digestOf, slotId, uniqueId } from "./job-ids.js";
import { type CallOptions, isOnce, type Options, stageOptions, withOptions } from "./options.js";

/** What a call knows of its function: `accepts` only if it is defined here. */
export interface Callee {
  readonly name: string;
  readonly options: Options;
  readonly signature: Signature;
  accepts?(args: Arguments): Promise<unknown>;
}

/** A call as it is sent, whatever becomes of its input afterwards. `idAt`: its id, if it is enqueued at this time of the server. */
export type Written = Pick<NewItem, "data" | "headers"> & { idAt(now: number): string };

/** A call. `JobFunction.call` creates one; enqueue it with `App.enqueueMany`, or start a chain with it. */
export class Call<Result = unknown> {
  /** The type of what the function returns. */
  declare readonly Result: Result;
  readonly function: string;
  readonly options: Options;
  readonly #callee: Callee;
  readonly #given: CallOptions;
  readonly #backoff: Pick<Envelope, "backoff" | "delays">;
  /** The stages behind it, of a chain. */
  readonly stages: readonly Stage[];
  readonly args: Arguments;
  /** The id that was chosen for it, or made of its arguments when it became the first job of a chain. */
  readonly id: string | undefined;

  /** `input`: of the function, or its Arguments. */
  constructor(
    callee: Callee,
    input: unknown,
    given: CallOptions,
    stages: readonly Stage[] = [],
    id?: string,
  ) {
    const args = callee.signature.argumentsOf(input);
    this.args = args;
    const options = withOptions(callee.options, given);
    this.function = callee.name;
    this.options = options;
    this.#callee = callee;
    this.#given = given;
    this.#backoff = given.backoff === undefined ? {} : backoffMembers(options.backoff);
    this.stages = stages;
    this.id = id ?? options.id;
  }

  /** Whether its id is made of its arguments. */
  get isOnce(): boolean {
    return isOnce(this.options);
  }

  /** Throws BadInputError if its function is defined here and does not take the input. */
  async check(): Promise<void> {
    await this.#callee.accepts?.(this.args);
  }

  /** The same as the first job of a chain. */
  leading(id: string, stages: readonly Stage[]): Call<Result> {
    return new Call(this.#callee, this.args, this.#given, stages, id);
  }

  /** The same with its input as it is now. Throws SerializationError. */
  copied(format: Format): Call<Result> {
    this.#checkValues(format); // also that nothing contains itself
    const { args, kwargs } = this.args;
    const headers = this.#given.headers && { ...this.#given.headers };
    const input = new Arguments(copied(args), copied(kwargs));
    return new Call(this.#callee, input, { ...this.#given, headers }, this.stages, this.id);
  }

  /** Its id, by the server's time in ms at which it is enqueued. Throws SerializationError. */
  idMaker(): (now: number) => string {
    const { id, options } = this;
    if (id !== undefined || !this.isOnce) return () => id ?? randomId();
    const digest = digestOf(this.function, this.args);
    const length = Math.round(options.throttle);
    return (now) => (options.unique ? uniqueId(digest) : slotId(digest, length, now));
  }

  /** The item that carries it, without its options. Throws SerializationError. */
  written(format: Format): Written {
    this.#checkValues(format);
    const { at, delay, headers } = this.options;
    const enqueued = Date.now();
    const due = at === undefined ? enqueued + delay : at;
    const job = this.#envelope(enqueued, due > enqueued ? Math.round(due) : undefined);
    return { idAt: this.idMaker(), data: write(job, format), headers: headers && { ...headers } };
  }

  /** The job for later: its time starts when it is enqueued. Throws SerializationError. */
  stage(format: Format, id?: string): Stage {
    this.#checkValues(format);
    const { queue, headers } = this.options;
    return { id, queue, job: this.#envelope(), add: stageOptions(this.options), headers };
  }

  /** All members in one literal: V8 takes several times as long to copy an object and add members as to write it as text. */
  #envelope(enqueued?: number, due?: number): Envelope {
    const { args, kwargs } = this.args;
    const { timeLimit, attempt, description } = this.options;
    const isLimited = Number.isFinite(timeLimit);
    // What a call does not say, the function's program does (spec/jobs.md, The envelope).
    const timeout = this.#given.timeLimit === undefined ? undefined : isLimited ? Math.round(timeLimit) : 0;
    return {
      v: 1,
      function: this.function,
      args: args.length > 0 ? args : undefined,
      kwargs: Object.keys(kwargs).length > 0 ? kwargs : undefined,
      attempt: attempt === 1 ? undefined : attempt,
      timeout,
      backoff: this.#backoff.backoff,
      delays: this.#backoff.delays,
      description,
      // biome-ignore lint/suspicious/noThenProperty: the name of the specification
      then: this.stages.length > 0 ? this.stages : undefined,
      enqueued,
      due,
    };
  }

  #checkValues(format: Format): void {
    for (const [index, value] of this.args.args.entries()) {
      checkValue(value, format, `argument ${index + 1} of ${this.function}`);
    }
    for (const [name, value] of Object.entries(this.args.kwargs)) {
      checkValue(value, format, `argument ${name} of ${this.function}`);
    }
  }
}
