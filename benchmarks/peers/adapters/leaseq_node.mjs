// leaseq on Node, from this checkout.
//
// Settings:
// - the variant `items` is `client.worker`, `jobs` is a worker of `leaseq/jobs`, whose results are not kept (`keep: 0`)
// - `concurrency: 100`, as BullMQ's
// - bulk: `queue.add` of an array, `app.enqueueMany`
// - quickest recovery: `duration: 1000`; by default it is 30 s
//
// Reference: docs/typescript.md, docs/typescript-jobs.md
import { ORDERS, concurrency, handle, load, produce } from "./common.mjs";

const server = { host: "127.0.0.1", port: ORDERS.port, db: ORDERS.database };
const settings = { concurrency: concurrency(100), ...(ORDERS.recovery === "quickest" ? { duration: 1000 } : {}) };

if (ORDERS.variant === "jobs") {
  const { App } = load("leaseq/jobs");
  const app = new App(server);
  const handled = app.define("handle", { keep: 0 }, (data) => handle(data));
  if (ORDERS.role === "produce") {
    await produce(
      ({ data }) => handled.enqueue(data),
      (jobs) => app.enqueueMany(jobs.map(({ data }) => handled.call(data))),
    );
  } else await app.worker(settings).run();
} else {
  const { Client } = load("leaseq");
  const client = new Client(server);
  const queue = client.queue("bench");
  if (ORDERS.role === "produce") {
    await produce(
      (job) => queue.add(job),
      (jobs) => queue.add(jobs),
    );
  } else await client.worker(queue, (item) => handle(item.data.toString()), settings).run();
}
