// A shop that mails receipts, with leaseq.
import { App } from "leaseq/jobs";

const app = new App(process.env.REDIS_URL, { queue: "mails" });

const options = { retries: 2, backoff: { first: 100 }, keep: 3_600_000 };
const receipt = app.define("receipt", options, async ({ order }, job) => {
  job.progress(50, 100);
  if (order === 17 && job.attempt === 1) throw new Error("the mail server is busy");
  return `receipt ${order} is sent`;
});
const report = app.define("report", ({ kind }) => `${kind} report`);
app.cron(report, "0 3 * * *", { name: "nightly", input: { kind: "daily" } });

const worker = app.worker({
  concurrency: 5,
  hooks: { ended: (_item, _ms, error) => error && console.log(`failed: ${error.message}`) },
});
const ran = worker.run();

const first = await receipt.enqueue({ order: 17 }, { id: "receipt-17" });
const second = await receipt.enqueue({ order: 18 }, { delay: 200 });
console.log(await first.result());
console.log(await second.result());

console.log((await app.schedules.list()).map(({ name }) => name).join());

await worker.close();
await ran;
await app.close();
