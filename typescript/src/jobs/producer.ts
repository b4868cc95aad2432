// Enqueues calls. app.ts and job-function.ts use it.
import { LeaseqError, NotDurableError, PartialError, QueueFullError } from "../errors.js";
import { derivedId } from "../item-id.js";
import type { Queue } from "../queue.js";
import type { NewItem } from "../requests.js";
import type { Call, Written } from "./call.js";
import type { Stage } from "./envelope.js";
import type { Format } from "./format.js";
import { itemOptions, needsServerTime } from "./options.js";
import type { Store } from "./store.js";

/** The answer for an item for which the queue had no room (4.1). */
const NO_ROOM = -1;

/** What became of a call. */
export interface Enqueued {
  readonly id: string;
  readonly added: boolean;
}

/** A call and its item. */
interface Draft {
  readonly call: Call;
  readonly item: NewItem & { readonly id: string };
}

/** Enqueues jobs in one format. */
export class Producer {
  constructor(
    readonly store: Store,
    readonly format: Format,
  ) {}

  /** Enqueues calls, in one call of the server for each queue and 256 of them. Throws SerializationError, BadInputError. */
  async enqueue(calls: readonly Call[]): Promise<Enqueued[]> {
    const written = calls.map((call) => call.written(this.format));
    await Promise.all(calls.map((call) => call.check()));
    const found: Enqueued[] = new Array(calls.length);
    for (const [name, indexes] of byQueue(calls.map((call) => call.options.queue))) {
      const queue = this.store.queue(name);
      const chosen = indexes.map((index) => calls[index] as Call);
      const time = chosen.some(needsTime) ? await this.store.serverTime(queue) : undefined;
      const drafts = indexes.map((index) => {
        const call = calls[index] as Call;
        const { idAt, data, headers } = written[index] as Written;
        return { call, item: { ...itemOptions(call.options, time), id: idAt(time ?? 0), data, headers } };
      });
      const added = await this.#add(queue, drafts);
      await this.#forgetEarlier(drafts.filter((_, position) => added[position]));
      for (const [position, index] of indexes.entries()) {
        found[index] = { id: drafts[position]?.item.id ?? "", added: added[position] ?? false };
      }
    }
    return found;
  }

  /** The id of a call, if it is enqueued now. */
  async idOf(call: Call): Promise<string> {
    const idAt = call.idMaker();
    return idAt(needsTime(call) ? await this.store.serverTime(this.store.queue(call.options.queue)) : 0);
  }

  /** Adds jobs to one queue, and returns for each whether it was added. */
  async #add(queue: Queue, drafts: readonly Draft[]): Promise<boolean[]> {
    const isHeld = drafts.some(({ call }) => call.isOnce)
      ? await this.#held(queue, drafts)
      : drafts.map(() => false);
    const sent = drafts.filter((_, position) => !isHeld[position]);
    if (sent.length === 0) return drafts.map(() => false);
    const items = sent.map(({ item }) => item);
    try {
      const [only] = items;
      const created = only && items.length === 1 ? [await queue.add(only)] : await queue.add(items);
      return aligned(created, isHeld).map((when) => when !== 0);
    } catch (error) {
      const unused = notAdded(sent, error).filter(({ call }) => call.options.throttle !== 0);
      await this.store.freeSlots(
        queue,
        unused.map(({ item }) => item.id),
      );
      throw realigned(error, isHeld);
    }
  }

  /** Which jobs have a result that is kept, or a slot that has its job. The slots of the others are taken (LQ-ADD-8). */
  async #held(queue: Queue, drafts: readonly Draft[]): Promise<boolean[]> {
    const ids = (some: readonly Draft[]) => [...new Set(some.map(({ item }) => item.id))];
    const unique = ids(drafts.filter(({ call }) => call.options.unique));
    const outcomes = unique.length > 0 ? await queue.outcome(unique) : [];
    const kept = new Set(unique.filter((_, index) => outcomes[index]?.state === "result"));
    const throttled = drafts.filter(({ call }) => call.options.throttle !== 0);
    const slots = throttled.map(({ call, item }) => [item.id, Math.round(call.options.throttle)] as const);
    const free = await this.store.takeSlots(queue, slots);
    const late = new Set(throttled.filter((_, index) => !free[index]));
    return drafts.map((draft) => (draft.call.options.unique && kept.has(draft.item.id)) || late.has(draft));
  }

  /** Deletes what stands beside earlier jobs of these ids, and of the stages behind them (LQ-JOB-26, LQ-JOB-29). */
  async #forgetEarlier(added: readonly Draft[]): Promise<void> {
    const jobs = added
      .filter(({ call }) => call.isOnce || call.id !== undefined)
      .flatMap(({ call, item }) => [{ queue: call.options.queue, id: item.id }, ...call.stages]);
    for (const [name, indexes] of byQueue(jobs.map((job) => job.queue))) {
      await this.store.forget(
        this.store.queue(name),
        indexes.map((index) => jobs[index]?.id ?? ""),
      );
    }
  }
}

const needsTime = ({ id, options }: Call): boolean =>
  needsServerTime(options) || (id === undefined && options.throttle !== 0);

/** Those of the jobs that were not added for certain, when adding them threw this. */
function notAdded(sent: readonly Draft[], error: unknown): Draft[] {
  if (!(error instanceof LeaseqError)) return [];
  const answers = hasAnswers(error) ? error.answers : [];
  const unknown = error instanceof PartialError ? error.inDoubt : error.definite ? 0 : sent.length;
  return sent.filter((_, position) =>
    position < answers.length ? answers[position] === NO_ROOM : position >= answers.length + unknown,
  );
}

const hasAnswers = (error: unknown): error is { readonly answers: readonly number[] } =>
  error instanceof QueueFullError || error instanceof NotDurableError || error instanceof PartialError;

/** Answers in the order of all jobs: of those that were not sent, as of an id that existed. It ends at the first job without one. */
function aligned(answers: readonly number[], isHeld: readonly boolean[]): number[] {
  const found: number[] = [];
  let next = 0;
  for (const held of isHeld) {
    if (!held && next === answers.length) break;
    found.push(held ? 0 : (answers[next++] as number));
  }
  return found;
}

/** The same error with its answers in the order of all jobs. */
function realigned(error: unknown, isHeld: readonly boolean[]): unknown {
  if (!isHeld.includes(true) || !hasAnswers(error)) return error;
  const answers = aligned(error.answers, isHeld);
  if (error instanceof QueueFullError) return new QueueFullError(answers, error.cause as LeaseqError);
  if (error instanceof PartialError) return new PartialError(answers, error.inDoubt, error.cause);
  const { message, wanted, reached } = error as unknown as NotDurableError<number>;
  return new NotDurableError(message, answers, wanted, reached);
}

/** The stages of a chain behind a job: their ids are derived from its id and their numbers (LQ-JOB-28). */
export function numbered(first: string, stages: readonly Stage[]): Stage[] {
  return stages.map((stage, index) => ({ ...stage, id: derivedId(first, index + 1) }));
}

/** The positions of each name in a list. */
export function byQueue(names: readonly string[]): Map<string, number[]> {
  const found = new Map<string, number[]>();
  for (const [index, name] of names.entries()) {
    const indexes = found.get(name);
    if (indexes) indexes.push(index);
    else found.set(name, [index]);
  }
  return found;
}
