// BullMQ on Node.
//
// Settings:
// - `concurrency: 100`, which drains faster than 10 and 500; `removeOnComplete` and `removeOnFail`: finished jobs are not kept
// - bulk: `addBulk`, 500 at a time
// - quickest recovery: `lockDuration` and `stalledInterval` of 1000 ms
//
// Reference: https://docs.bullmq.io/guide/workers/concurrency, https://docs.bullmq.io/guide/workers/stalled-jobs,
// https://docs.bullmq.io/guide/queues/auto-removal-of-jobs
import { ORDERS, concurrency, handle, load, produce } from "./common.mjs";

const { Queue, Worker } = load("bullmq");
const WIDTH = 500;
const connection = { host: "127.0.0.1", port: ORDERS.port, db: ORDERS.database, maxRetriesPerRequest: null };
const kept = { removeOnComplete: true, removeOnFail: true };

if (ORDERS.role === "produce") {
  const queue = new Queue("bench", { connection });
  await queue.waitUntilReady();
  const options = ({ id, data }) => ["handle", { data }, { jobId: id, ...kept }];
  await produce(
    (job) => queue.add(...options(job)),
    async (jobs) => {
      for (let at = 0; at < jobs.length; at += WIDTH) {
        await queue.addBulk(
          jobs.slice(at, at + WIDTH).map((job) => {
            const [name, data, opts] = options(job);
            return { name, data, opts };
          }),
        );
      }
    },
  );
} else {
  const settings = { connection, concurrency: concurrency(100) };
  if (ORDERS.recovery === "quickest") Object.assign(settings, { lockDuration: 1000, stalledInterval: 1000 });
  const worker = new Worker("bench", async (job) => handle(job.data.data), settings);
  worker.on("error", () => {});
}
