// The functions of an App, by name.
import { BadArgumentError } from "../errors.js";
import type { Arguments, Signature } from "./arguments.js";
import type { JobContext } from "./context.js";
import type { Options } from "./options.js";
import { checkInput, type Schema } from "./schema.js";

const MAX_NAME_CHARS = 200;

/** A class of errors. */
export type ErrorClass = new (...args: never[]) => unknown;

/** A function that was defined. */
export class Definition {
  constructor(
    readonly signature: Signature,
    readonly options: Options,
    readonly schema: Schema | undefined,
    readonly deadLetterOn: readonly ErrorClass[],
    readonly run: Run,
  ) {}

  get name(): string {
    return this.signature.name;
  }

  /** Returns what the function gets. Throws BadInputError if it does not take these arguments. */
  async accepts(args: Arguments): Promise<unknown> {
    const input = this.signature.inputOf(args);
    return this.schema ? await checkInput(this.schema, input, this.name) : input;
  }
}

// biome-ignore lint/suspicious/noExplicitAny: the function and its schema agree on the type
type Run = (input: any, context: JobContext) => unknown;

/** The name of a function. Throws BadArgumentError. */
export function checkName(name: string): string {
  if (typeof name === "string" && name !== "" && name.isWellFormed() && [...name].length <= MAX_NAME_CHARS) {
    return name;
  }
  throw new BadArgumentError(`the name of a function is text of 1 to ${MAX_NAME_CHARS} characters`);
}
