// Calls of one kind on one queue, for all their callers. queue.ts adds by it, completer.ts completes.
import { setImmediate } from "node:timers";
import { UnavailableError } from "./errors.js";
import { MAX_ENTRIES } from "./scripts.generated.js";
import { isServerAway } from "./server-health.js";

/** The most bytes of entries in one call (characters, if they are text), unless one entry alone is longer. */
const MAX_LENGTH = 4 * 1024 * 1024;

/** What a gatherer calls, and how. */
export interface Gathering<Entry, Answer> {
  /** How many calls are under way at a time. */
  readonly atOnce: number;
  /** How many milliseconds an entry waits at most: behind a server that does not answer, it is not sent. */
  readonly limit?: number;
  /** Starts a call: at once, or when others have come. */
  readonly defer: (start: () => void) => void;
  /** The bytes of an entry. */
  readonly length: (entry: Entry) => number;
  /** Makes one call, and returns an answer for each entry. */
  readonly call: (entries: readonly Entry[]) => Promise<readonly Answer[]>;
}

/** An entry, and its caller. */
interface Waiting<Entry, Answer> {
  readonly entry: Entry;
  readonly until: number;
  resolve(answer: Answer): void;
  reject(error: unknown): void;
}

/**
 * An entry that comes while as many calls are under way as are made at a time waits, and goes along with the others in the next one: many
 * callers at once cost few calls, and a single one does not wait.
 */
export class Gatherer<Entry, Answer> {
  readonly #gathering: Gathering<Entry, Answer>;
  #waiting: Waiting<Entry, Answer>[] = [];
  #calls = 0;
  #isDeferred = false;

  constructor(gathering: Gathering<Entry, Answer>) {
    this.#gathering = gathering;
  }

  /** Makes a call with the entry and returns its answer. */
  run(entry: Entry): Promise<Answer> {
    const until = performance.now() + (this.#gathering.limit ?? Number.POSITIVE_INFINITY);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ entry, until, resolve, reject });
      if (this.#isDeferred) return;
      this.#isDeferred = true;
      this.#gathering.defer(() => {
        this.#isDeferred = false;
        this.#proceed();
      });
    });
  }

  #proceed(): void {
    while (this.#waiting.length > 0 && this.#calls < this.#gathering.atOnce) {
      const group = this.#next();
      if (group.length === 0) return;
      this.#calls++;
      const end = () => {
        this.#calls--;
        this.#proceed();
      };
      // callers that go on at once with the next entry go along
      this.#send(group).then(() => (group.length > 1 ? setImmediate(end) : end()));
    }
  }

  /** Takes what one call takes. */
  #next(): Waiting<Entry, Answer>[] {
    const now = performance.now();
    const late = this.#waiting.findIndex(({ until }) => until >= now);
    for (const { reject } of this.#waiting.splice(0, late < 0 ? this.#waiting.length : late)) {
      reject(
        new UnavailableError("the server did not answer earlier calls in time, and this one was not sent"),
      );
    }
    let count = 0;
    let total = 0;
    for (const { entry } of this.#waiting.slice(0, MAX_ENTRIES)) {
      total += this.#gathering.length(entry);
      if (count > 0 && total > MAX_LENGTH) break;
      count++;
    }
    return this.#waiting.splice(0, count);
  }

  /**
   * Makes a call for a group. If it is refused, each half goes alone, until the error reaches the entry that caused it. If the server is
   * away, all get the error.
   */
  async #send(group: readonly Waiting<Entry, Answer>[]): Promise<void> {
    try {
      const answers = await this.#gathering.call(group.map(({ entry }) => entry));
      for (const [index, { resolve }] of group.entries()) resolve(answers[index] as Answer);
    } catch (error) {
      if (group.length === 1 || isServerAway(error)) for (const { reject } of group) reject(error);
      else {
        const half = group.length >> 1;
        await Promise.all([this.#send(group.slice(0, half)), this.#send(group.slice(half))]);
      }
    }
  }
}
