// The functions that run elsewhere. The web application and the worker both import them.
import { App } from "leaseq/jobs";
import { z } from "zod";

export const app = new App(process.env.REDIS_URL ?? "redis://localhost");

const input = z.object({ url: z.url(), width: z.int().min(1).max(4000).default(200) });

export const thumbnail = app.define(
  "thumbnail",
  { input, timeLimit: 30_000 },
  async ({ url, width }, job) => {
    job.signal.throwIfAborted(); // pass it to fetch and the like
    return { thumbnail: `${url}?width=${width}` };
  },
);
