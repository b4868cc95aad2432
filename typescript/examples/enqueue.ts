// Enqueues one job and prints what it returned, as JSON; ends with 1 where it failed:
//
//   node dist/examples/enqueue.js redis://localhost shop.total '[[10, 20]]' '{"tax": 0.1}'
import { Client } from "leaseq";
import { enqueue, JobFailedError, result } from "./jobs.js";

const MINUTE_MS = 60_000;

const [url, name, args = "[]", kwargs = "{}"] = process.argv.slice(2);
if (url === undefined || name === undefined) throw new Error("enqueue.js URL FUNCTION [ARGS [KWARGS]]");

const client = new Client(url);
try {
  const queue = client.queue("default", { group: "jobs" });
  const call = { function: name, args: JSON.parse(args), kwargs: JSON.parse(kwargs) };
  const id = await enqueue(queue, call, { headers: { from: "typescript" } });
  console.log(JSON.stringify(await result(queue, id, 5 * MINUTE_MS)));
} catch (error) {
  if (!(error instanceof JobFailedError)) throw error;
  console.error(`${error.type}: ${error.message}\n${error.traceback}`);
  process.exitCode = 1;
} finally {
  await client.close();
}
