// The worker: start as many as you need. SIGTERM lets running jobs end.
import { app } from "./tasks.js";

const worker = app.worker({ concurrency: 10 });
for (const signal of ["SIGTERM", "SIGINT"]) process.once(signal, () => worker.stop());
await worker.run();
await app.close();
