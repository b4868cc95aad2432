import assert from "node:assert/strict";
import { test } from "node:test";
import { type } from "arktype";
import * as v from "valibot";
import { z } from "zod";
import { BadInputError, type Handle } from "../src/jobs/index.js";
import { JobFixture } from "./job-fixture.js";

const jobs = JobFixture.inThisFile();

test("schemas of zod, valibot and arktype check the input, and say its types", async () => {
  const { app } = jobs;
  const run = ({ to, at }: { to: string; at: Date }): string => `${to} ${at.toISOString()}`;
  const functions = [
    app.define(
      "zod",
      { input: z.object({ to: z.string(), at: z.string().transform((text) => new Date(text)) }) },
      run,
    ),
    app.define(
      "valibot",
      {
        input: v.object({
          to: v.string(),
          at: v.pipe(
            v.string(),
            v.transform((text) => new Date(text)),
          ),
        }),
      },
      run,
    ),
    app.define("arktype", { input: type({ to: "string", at: "string.date.parse" }) }, run),
  ];
  jobs.work();
  for (const each of functions) {
    const handle: Handle<string> = await each.enqueue({ to: "a", at: "2026-03-01T12:00:00.000Z" });
    assert.equal(await handle.result(), "a 2026-03-01T12:00:00.000Z");
    // @ts-expect-error the schema takes text
    await assert.rejects(each.enqueue({ to: 1, at: "2026-03-01" }), (error: Error) => {
      assert.ok(error instanceof BadInputError);
      assert.match(error.message, /^the input of \w+ does not fit: input\.to: .*string/);
      return true;
    });
    const other = await app.function(each.name).call({ to: 1 });
    await assert.rejects(app.enqueueMany([other]), BadInputError);
  }
});
