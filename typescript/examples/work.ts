// Runs COUNT jobs of the queue `node`, then ends:
//
//   node dist/examples/work.js redis://localhost 10
//
// and in Python: App(...).function("text.words").with_options(queue="node").enqueue("two words")
import { Client } from "leaseq";
import type { Json } from "./jobs.js";
import { type Run, work } from "./running.js";

const FUNCTIONS = new Map<string, Run>([
  ["text.words", ([text], { separator = " " }) => String(text).split(String(separator))],
  [
    "text.number",
    ([text]): Json => {
      const found = Number(text);
      if (Number.isNaN(found)) throw new RangeError(`${text} is no number`);
      return found;
    },
  ],
]);

const [url, count] = process.argv.slice(2);
if (url === undefined || count === undefined) throw new Error("work.js URL COUNT");

const client = new Client(url);
const queueOf = (name: string) => client.queue(name, { group: "jobs" });
let left = Number(count);
for await (const lease of queueOf("node").items({ duration: 60_000 })) {
  await work(lease, FUNCTIONS, queueOf);
  left -= 1;
  if (left === 0) break;
}
await client.close();
