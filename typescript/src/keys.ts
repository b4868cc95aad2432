// The names of the keys of a queue. The part names that a script takes are in scripts.generated.ts.
import type { Argument } from "./encoding.js";
import { BadArgumentError } from "./errors.js";
import { KEY_PATTERN } from "./scripts.generated.js";

/** The SET of the queues that clients have used (LQ-REGISTRY-1). */
export const REGISTRY = "leaseq:queues";

// LQ-KEY-2. In JavaScript `$` matches the end of the text only, not before a trailing line break.
const NAME = /^[A-Za-z0-9_.-]{1,100}$/;

/** The keys of a queue. Queues of one group share a hash slot (LQ-KEY-1). Throws BadArgumentError for an invalid name. */
export class QueueKeys {
  readonly #prefix: string;

  constructor(
    readonly name: string,
    readonly group: string = name,
  ) {
    for (const part of [name, group]) {
      if (!NAME.test(part))
        throw new BadArgumentError(`not the name of a queue or group: ${JSON.stringify(part)}`);
    }
    this.#prefix = KEY_PATTERN.replace("<group>", group).replace("<name>", name).replace("<key>", "");
  }

  /** Whether both are of the same queue. */
  equals(other: QueueKeys): boolean {
    return this.name === other.name && this.group === other.group;
  }

  /** The key of one part of the queue, such as `ready`. */
  key(part: string): string {
    return this.#prefix + part;
  }

  /** The entry of this queue in the registry: `<group>:<name>`. */
  get registryEntry(): string {
    return `${this.group}:${this.name}`;
  }

  /** The keys of several parts, as a script takes them. */
  forParts(parts: readonly string[]): string[] {
    return parts.map((part) => this.#prefix + part);
  }

  /** The key of an item's outcome: bytes if the id is bytes. */
  resultKey(id: Argument): Argument {
    const start = `${this.#prefix}result:`;
    return typeof id === "string" ? start + id : Buffer.concat([Buffer.from(start), id]);
  }
}

/** The group of a key: its hash tag, which determines its slot. */
export function groupOfKey(key: Argument | undefined): string {
  return /\{([^}]+)\}/.exec(key?.toString() ?? "")?.[1] ?? "";
}
