// A function that runs elsewhere, as programs enqueue it.
import type { Arguments } from "./arguments.js";
import { Call, type Callee } from "./call.js";
import { Handle } from "./handle.js";
import type { CallOptions } from "./options.js";
import type { Producer } from "./producer.js";

/** The input of a function, and then options. The input can be left out if it may be undefined. */
export type InputAndOptions<Input> = undefined extends Input
  ? [input?: Input | Arguments, options?: CallOptions]
  : [input: Input | Arguments, options?: CallOptions];

/** A function by its name. `App.define` and `App.function` create one. */
export class JobFunction<Input = unknown, Result = unknown> {
  readonly #producer: Producer;
  /** For chains: a function takes what the one before it returns. */
  declare readonly Input: (input: Input) => void;

  constructor(
    producer: Producer,
    /** Its name and options. */
    readonly callee: Callee,
  ) {
    this.#producer = producer;
  }

  get name(): string {
    return this.callee.name;
  }

  /**
   * Enqueues a call, in one round trip, or in two if `id` or `at` is given, three if it is `unique`, four with `throttle`. Throws BadInputError if the function does not take the input,
   * SerializationError if the format cannot hold it, and the errors of `Queue.add`.
   */
  async enqueue(...[input, options]: InputAndOptions<Input>): Promise<Handle<Result>> {
    const call = new Call<Result>(this.callee, input, options ?? {});
    const [enqueued] = await this.#producer.enqueue([call]);
    return new Handle(this.#producer.store, enqueued?.id ?? "", call.options.queue, enqueued?.added);
  }

  /** Returns a call, for `App.enqueueMany` and `App.chain`. */
  call(...[input, options]: InputAndOptions<Input>): Call<Result> {
    return new Call<Result>(this.callee, input, options ?? {});
  }
}
