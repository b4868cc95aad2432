// A shop that mails receipts, with BullMQ.
import { Queue, QueueEvents, Worker } from "bullmq";

const connection = { url: process.env.REDIS_URL, maxRetriesPerRequest: null };
const mails = new Queue("mails", { connection });
const events = new QueueEvents("mails", { connection });

const worker = new Worker(
  "mails",
  async (job) => {
    if (job.name === "report") return `${job.data.kind} report`;
    await job.updateProgress(50);
    if (job.data.order === 17 && job.attemptsMade === 0) throw new Error("the mail server is busy");
    return `receipt ${job.data.order} is sent`;
  },
  { connection, concurrency: 5 },
);
worker.on("failed", (_, error) => console.log(`failed: ${error.message}`));
worker.on("error", (error) => console.error(error));

const options = {
  attempts: 3,
  backoff: { type: "exponential", delay: 100 },
  removeOnComplete: { age: 3600 },
};
const first = await mails.add("receipt", { order: 17 }, { ...options, jobId: "receipt-17" });
const second = await mails.add("receipt", { order: 18 }, { ...options, delay: 200 });
console.log(await first.waitUntilFinished(events));
console.log(await second.waitUntilFinished(events));

await mails.upsertJobScheduler(
  "nightly",
  { pattern: "0 3 * * *" },
  { name: "report", data: { kind: "daily" } },
);
console.log((await mails.getJobSchedulers()).map(({ key }) => key).join());

await worker.close();
await events.close();
await mails.close();
