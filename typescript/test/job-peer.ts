// A program with jobs that the tests of Python talk to: one JSON object a line on stdin, one reply a line on stdout, {"error": ...} if
// the request failed.
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "../src/index.js";
import { App, Arguments, type Call, DeadLetter, type Format } from "../src/jobs/index.js";
import { CronTimetable } from "../src/jobs/timetable.js";

interface CallRequest {
  readonly function: string;
  readonly args?: readonly unknown[];
  readonly kwargs?: Readonly<Record<string, unknown>>;
  readonly options?: object;
}

type Request = Readonly<Record<string, unknown>> & { readonly do: string };

const [url = "", format = "json"] = process.argv.slice(2);
const client = new Client(url);
const app = new App(client, { format: format as Format });
const results: ((options: { timeout: number }) => Promise<unknown>)[] = [];

app.define("node.echo", (input: unknown) => input);
app.define("node.pair", { parameters: ["first", "separator?"] }, (input: object) => input);
app.define("node.number", { backoff: { first: 1, last: 1 } }, (text: string) => {
  const number = Number(text);
  if (Number.isNaN(number)) throw new RangeError(`${text} is no number`);
  return number;
});
app.define("node.never", (why: string) => {
  throw new DeadLetter(why);
});
app.define("node.attempt", (_: unknown, { attempt, enqueued, due, headers }) => ({
  attempt,
  late: due - enqueued,
  headers: Object.fromEntries([...headers].map(([name, value]) => [name, value.toString()])),
}));
app.define("node.wait", async (_: unknown, { signal, progress }) => {
  progress(1, 2);
  await sleep(600_000, undefined, { signal });
});
const tick = app.define("both.tick", { queue: "both" }, () => "node");

const call = (request: CallRequest): Call => {
  const { function: name, args, kwargs, options } = request;
  return app.function(name).call(new Arguments(args, kwargs), options);
};

const COMMANDS: Readonly<Record<string, (request: Request) => Promise<unknown>>> = {
  async enqueue({ call: given }) {
    const [handle] = await app.enqueueMany([call(given as CallRequest)]);
    results.push((options) => handle?.result(options) ?? Promise.resolve());
    return handle?.id;
  },
  async chain({ calls }) {
    const [first, ...rest] = (calls as CallRequest[]).map((one) => ({ ...one, call: call(one) }));
    if (!first) throw new Error("no calls");
    let chain = app.chain(first.call);
    for (const { function: name, args, kwargs, options } of rest) {
      chain = chain.next(app.function(name), options, new Arguments(args, kwargs));
    }
    const handle = await chain.enqueue();
    results.push((options) => handle.result(options));
    return handle.stages.map(({ id }) => id);
  },
  result: async ({ timeout }) => await results.at(-1)?.({ timeout: timeout as number }),
  info: async ({ id, queue }) => await app.handle(id as string, queue as string).info(),
  cancel: async ({ id, queue }) => await app.handle(id as string, queue as string).cancel(),
  async every({ ms }) {
    app.every(tick, ms as number, { missed: "all", keep: 600_000 });
  },
  async work({ queues, duration }) {
    const worker = app.worker({ queues: queues as string[], duration: duration as number });
    worker.run();
    return worker.id;
  },
  schedules: async ({ queue }) => await app.schedules.list(queue as string),
  async slots({ line, zone, after, count }) {
    const slots = new CronTimetable(line as string, zone as string).after(after as number);
    return Array.from({ length: count as number }, () => slots.next().value ?? null);
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line) as Request;
  let reply: unknown;
  try {
    reply = { value: (await COMMANDS[request.do]?.(request)) ?? null };
  } catch (error) {
    reply = { error: (error as Error).name, ...(error as object), message: (error as Error).message };
  }
  console.log(JSON.stringify(reply));
}
await client.close();
