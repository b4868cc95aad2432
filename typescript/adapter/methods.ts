// The methods of the adapter protocol, with the public API of the client: how to call the client, and how to shape its results.
import type {
  Completed,
  CompleteOptions,
  Completion,
  FollowUp,
  HandOff,
  ItemInfo,
  LeasedItem,
  LeaseOptions,
  ListOptions,
  ListState,
  Outcome,
} from "leaseq";
import { JOB_METHODS } from "./job-methods.js";
import type { Method, MethodCall } from "./method.js";
import * as values from "./values.js";
import { type Json, number } from "./values.js";

const queueOf = ({ session, queue }: MethodCall) => session.queue(queue);
const entries = (args: Json) => args.items as Json[];
const heldItems = ({ session, queue, args }: MethodCall): LeasedItem[] =>
  entries(args).map((entry) => session.held(queue, entry));
/** The item of a call about one. Its own methods stop its heartbeat. */
const heldItem = (call: MethodCall): LeasedItem => heldItems(call)[0] as LeasedItem;
const keepOption = (call: MethodCall) => {
  const { id: _id, token: _token, ...more } = heldItem(call).entry;
  return more;
};
const emptyResult = async (done: Promise<unknown>) => {
  await done;
  return {};
};

function completions({ session, queue, args }: MethodCall): Completion[] {
  const onlyCurrent = args.only_current === true && { onlyCurrent: true };
  return entries(args).map((entry) => ({
    ...session.held(queue, entry).entry,
    ...values.completion(entry),
    ...onlyCurrent,
  }));
}

function handOffs(call: MethodCall): HandOff[] {
  const { session, args } = call;
  const followUp = (one: Json): FollowUp => ({
    ...values.newItem(one.item as Json, one.options as Json | undefined),
    queue: session.queue(one.queue as string),
  });
  const then = entries(args).map((entry) => entry.then as Json[]);
  return completions(call).map((entry, index) => ({ ...entry, followUps: then[index]?.map(followUp) ?? [] }));
}

function leaseOptions({ args, signal }: MethodCall): LeaseOptions {
  return {
    duration: number(args.duration_ms),
    ...("count" in args && { count: number(args.count) }),
    ...values.waitOptions(args),
    signal,
  };
}

const eachAdded = (answers: number[]) => answers.map(values.added);

export const METHODS: Record<string, Method> = {
  ...JOB_METHODS,
  add: {
    run: (call) => {
      const { items, options } = call.args as { items: Json[]; options?: Json };
      const wait = { ...values.waitOptions(call.args), signal: call.signal };
      return queueOf(call).add(
        items.map((item) => values.newItem(item, options)),
        wait,
      );
    },
    shape: eachAdded,
  },
  lease: { run: async (call) => call.session.leased(await queueOf(call).leaseItems(leaseOptions(call))) },
  lease_any: {
    run: async (call) => {
      const queues = (call.args.queues as string[]).map((handle) => call.session.queue(handle));
      return call.session.leased(await call.session.client.leaseAny(queues, leaseOptions(call)));
    },
  },
  complete: {
    run: async (call) => {
      const [entry, ...others] = completions(call);
      if (!entry || others.length > 0) return await queueOf(call).complete(completions(call));
      const { id: _id, token: _token, ...options } = entry;
      return [await heldItem(call).complete(options as CompleteOptions)];
    },
  },
  hand_off: {
    run: (call) => queueOf(call).completeWith(handOffs(call)),
    shape: (answers: Completed[]) =>
      answers.map(({ completed, followUps }) => ({
        completed,
        added: followUps.map((created) => (created < 0 ? null : values.added(created))),
      })),
  },
  complete_and_lease: {
    run: async ({ session, queue, args }) => {
      const held = session.held(queue, args);
      const entry = args.only_current === true ? { ...held.entry, onlyCurrent: true } : held;
      const duration = number(args.duration_ms);
      const { completed, items } = await session.queue(queue).completeAndLease([entry], { duration });
      return { completed: completed[0], leases: session.leased(items).leases };
    },
  },
  extend: {
    run: async (call) => {
      const duration = number(call.args.duration_ms);
      if (entries(call.args).length === 1) return [await heldItem(call).extend(duration)];
      return await queueOf(call).extend(heldItems(call).map(({ id, token }) => ({ id, token, duration })));
    },
    shape: (deadlines: number[]) => deadlines.map((deadline) => (deadline === 0 ? null : String(deadline))),
  },
  release: {
    run: async (call) => {
      const options = values.releaseOptions(call.args);
      if (entries(call.args).length === 1)
        return [await heldItem(call).release({ ...keepOption(call), ...options })];
      return await queueOf(call).release(heldItems(call).map((held) => ({ ...held.entry, ...options })));
    },
  },
  dead_letter: {
    run: async (call) => {
      const options = { ...values.releaseOptions(call.args), dead: true };
      if (entries(call.args).length === 1)
        return [await heldItem(call).release({ ...keepOption(call), ...options })];
      return await queueOf(call).release(heldItems(call).map((held) => ({ ...held.entry, ...options })));
    },
    shape: (answers: string[]) => answers.map((answer) => answer === "dead"),
  },
  outcome: {
    run: (call) => queueOf(call).outcome(values.ids(call.args)),
    shape: (answers: Outcome[], { args }) => {
      const ids = values.ids(args);
      return answers.map((outcome, index) => values.outcome(ids[index] as Buffer, outcome));
    },
  },
  wait_outcome: {
    run: async (call) => {
      const id = values.bytes(call.args.id);
      const options = { ...values.waitOptions(call.args), signal: call.signal };
      return values.outcome(id, await queueOf(call).waitForOutcome(id, options));
    },
  },
  promote: { run: (call) => queueOf(call).promote(values.ids(call.args)) },
  revive: { run: (call) => queueOf(call).revive(values.ids(call.args)) },
  purge: {
    run: (call) => {
      const older = call.args.older_than_ms;
      return queueOf(call).purge(
        values.ids(call.args),
        older === undefined ? {} : { olderThan: number(older) },
      );
    },
  },
  remove: { run: (call) => queueOf(call).remove(values.ids(call.args)) },
  stats: { run: async (call) => values.stats(await queueOf(call).stats()) },
  inspect: {
    run: (call) => queueOf(call).inspect(values.ids(call.args)),
    shape: (answers: ItemInfo[], { args }) => {
      const ids = values.ids(args);
      return answers.map((info, index) => values.inspection(ids[index] as Buffer, info));
    },
  },
  list: {
    run: async (call) => {
      const { state, offset, limit, order } = call.args;
      const options = {
        offset: number(offset),
        limit: number(limit),
        order: order as ListOptions["order"] & string,
      };
      const { total, items } = await queueOf(call).listItems(state as ListState, options);
      return { total, items: items.map(({ id, time }) => ({ id: values.b64(id), time: String(time) })) };
    },
  },
  configure: { run: (call) => emptyResult(queueOf(call).configure(values.configuration(call.args))) },
  delete: { run: async (call) => ({ deleted: await queueOf(call).delete() }) },
  pause: { run: (call) => emptyResult(queueOf(call).configure({ paused: true })) },
  resume: { run: (call) => emptyResult(queueOf(call).configure({ paused: false })) },
  light_clean: {
    run: async (call) => {
      const { promoted, reclaimed, died, expired, pruned } = await queueOf(call).lightClean();
      return { promoted, reclaimed, died, expired, pruned };
    },
  },
  deep_clean: {
    run: async (call) => {
      const found = await queueOf(call).deepClean({ dryRun: call.args.dry_run === true });
      return Object.fromEntries([...found].filter(([, count]) => count > 0));
    },
  },
  hold: {
    run: async ({ session, queue, args }) => {
      session.held(queue, args).heartbeat();
      return {};
    },
  },
  held: { run: async ({ session, queue, args }) => ({ held: session.held(queue, args).held }) },
  lost: {
    run: async ({ session, queue, args, signal }) => {
      await aborted(session.held(queue, args).lostSignal, signal);
      return {};
    },
  },
  work: {
    run: async ({ session, queue, args }) => {
      session.work(queue, args);
      return {};
    },
  },
  handed_out: {
    run: ({ session, queue, args }) => emptyResult(session.loop(queue).handedOut(number(args.count))),
  },
  end_handlers: {
    run: async ({ session, queue, args }) => {
      session.loop(queue).endHandlers(args.how as string | undefined);
      return {};
    },
  },
  leave_off: {
    run: async ({ session, queue }) => {
      session.loop(queue).worker.stop();
      return {};
    },
  },
  finish: {
    run: async ({ session, queue }) => {
      const { worker, endHandlers, completed } = session.loop(queue);
      worker.stop();
      endHandlers();
      return { completed: await completed };
    },
  },
  live_workers: {
    run: async ({ session }) => (await session.client.liveWorkers()).map(values.liveWorker),
  },
  steer: {
    run: async ({ session, args }) => {
      const { client } = session;
      const id = String(args.worker);
      const steered = {
        quiet: () => client.quietWorker(id),
        resume: () => client.resumeWorker(id),
        stop: () => client.stopWorker(id),
      };
      return { alive: await steered[args.wish as keyof typeof steered]() };
    },
  },
  // this client registers queues and cannot list them
  queues: { run: async () => ({ queues: null }) },
};

/** Resolves when the first is aborted, throws when the second is. */
function aborted(awaited: AbortSignal, end: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (awaited.aborted) resolve();
    awaited.addEventListener("abort", () => resolve());
    end.addEventListener("abort", () => reject(end.reason));
  });
}
