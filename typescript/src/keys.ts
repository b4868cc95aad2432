import { BadArgumentError } from "./errors.js";
import { KEY_PATTERN } from "./scripts.generated.js";
import type { Word } from "./wire.js";

/** The SET of the queues that clients have used (LQ-REGISTRY-1). */
export const REGISTRY = "leaseq:queues";

// LQ-KEY-2. JavaScript's `$` is the end of the text, and not also what comes before a last line end.
const NAME = /^[A-Za-z0-9_.-]{1,100}$/;

/**
 * Where a queue lives: its name and its group, whose queues share a hash slot (LQ-KEY-1). Throws BadArgumentError for
 * what is no name.
 */
export class Address {
  readonly #prefix: string;

  constructor(
    readonly name: string,
    readonly group: string = name,
  ) {
    for (const word of [name, group]) {
      if (!NAME.test(word))
        throw new BadArgumentError(`not the name of a queue or group: ${JSON.stringify(word)}`);
    }
    this.#prefix = KEY_PATTERN.replace("<group>", group).replace("<name>", name).replace("<key>", "");
  }

  is(other: Address): boolean {
    return this.name === other.name && this.group === other.group;
  }

  key(name: string): string {
    return this.#prefix + name;
  }

  /** What stands for this queue in the registry. */
  get entry(): string {
    return `${this.group}:${this.name}`;
  }

  keys(names: readonly string[]): string[] {
    return names.map((name) => this.#prefix + name);
  }

  /** An id is bytes, so a key that ends in one is too. */
  resultKey(id: Uint8Array): Buffer {
    return Buffer.concat([Buffer.from(`${this.#prefix}result:`), id]);
  }
}

/** The group that a key says in braces, and with it the slot. */
export function groupOf(key: Word | undefined): string {
  return /\{([^}]+)\}/.exec(key?.toString() ?? "")?.[1] ?? "";
}
