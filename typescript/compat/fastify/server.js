// A web application that enqueues jobs and shows their results. Its worker, worker.js, is another process.
import Fastify from "fastify";
import { app, thumbnail } from "./tasks.js";

export const server = Fastify();

server.post("/images", async (request, reply) => {
  const job = await thumbnail.enqueue(request.body); // a BadInputError of the schema becomes a reply of 400, below
  return await reply.code(202).send({ id: job.id });
});

server.get("/images/:id", async (request) => {
  const { status, result, error } = await app.handle(request.params.id).info();
  return { status, result, error };
});

server.setErrorHandler((error, _request, reply) =>
  reply.code(error.name === "BadInputError" ? 400 : 500).send({ error: error.message }),
);

server.addHook("onClose", async () => await app.close());

if (process.argv[1] === import.meta.filename) await server.listen({ port: Number(process.env.PORT ?? 3000) });
