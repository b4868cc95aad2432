// Arguments by position and by name, as jobs have them, and the one value that a function here takes.
import { BadArgumentError } from "../errors.js";
import { BadInputError } from "./errors.js";
import { isMap } from "./format.js";

/** Arguments by position, and by name: what functions in other languages take. */
export class Arguments {
  constructor(
    readonly args: readonly unknown[] = [],
    readonly kwargs: Readonly<Record<string, unknown>> = {},
  ) {
    if (!Array.isArray(args) || !isMap(kwargs)) {
      throw new BadArgumentError("arguments are an array, and a plain object of those by name");
    }
  }
}

/** How a function takes its arguments: as one value, or by the names of its parameters, as one object. */
export class Signature {
  /** In their order, and whether each is needed. */
  readonly #parameters: ReadonlyMap<string, boolean> | undefined;

  /** Takes the names of parameters. An optional parameter has a "?" at its end, as in "tax?". Throws BadArgumentError. */
  constructor(
    readonly name: string,
    parameters: readonly string[] | undefined,
  ) {
    this.#parameters =
      parameters && new Map(parameters.map((each) => [each.replace(/\?$/, ""), !each.endsWith("?")]));
    if (this.#parameters && this.#parameters.size !== parameters?.length) {
      throw new BadArgumentError(`two parameters of ${name} have the same name`);
    }
  }

  /** The arguments of a call with this input. */
  argumentsOf(input: unknown): Arguments {
    if (input instanceof Arguments) return input;
    if (this.#parameters && isMap(input)) return new Arguments([], input);
    return new Arguments(input === undefined ? [] : [input]);
  }

  /** The input of the function. Throws BadInputError if it does not take these arguments. */
  inputOf({ args, kwargs }: Arguments): unknown {
    return this.#parameters ? this.#byName(this.#parameters, args, kwargs) : this.#oneValue(args, kwargs);
  }

  #oneValue(args: readonly unknown[], kwargs: Readonly<Record<string, unknown>>): unknown {
    const isNamed = Object.keys(kwargs).length > 0;
    if (args.length + Number(isNamed) > 1) {
      throw new BadInputError(
        `${this.name} takes one argument, or arguments by name: define it with parameters`,
      );
    }
    return isNamed ? kwargs : args[0];
  }

  #byName(
    parameters: ReadonlyMap<string, boolean>,
    args: readonly unknown[],
    kwargs: Readonly<Record<string, unknown>>,
  ): Record<string, unknown> {
    const names = [...parameters.keys()];
    if (args.length > names.length) {
      throw new BadInputError(`${this.name} takes ${names.length} arguments, and not ${args.length}`);
    }
    const byPosition = Object.fromEntries(args.map((value, index) => [names[index], value]));
    const unknown = Object.keys(kwargs).find((name) => !parameters.has(name) || name in byPosition);
    if (unknown !== undefined) {
      throw new BadInputError(`${this.name} takes ${names.join(", ")}, each once, and not ${unknown}`);
    }
    const input = { ...byPosition, ...kwargs };
    const missing = names.find((name) => parameters.get(name) && !(name in input));
    if (missing !== undefined) throw new BadInputError(`${this.name} needs ${missing}`);
    return input;
  }
}
