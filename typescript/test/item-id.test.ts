import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { derivedId } from "../src/index.js";

test("the id of a follow-up is measured in bytes, as the server measures it", () => {
  const id = "ä".repeat(120); // 240 bytes
  assert.equal(derivedId(id, "a".repeat(15)), `${id}/${"a".repeat(15)}`);
  const hashed = createHash("sha256").update(id).digest("hex");
  assert.equal(derivedId(id, "a".repeat(16)), `${hashed}/${"a".repeat(16)}`);
  assert.equal(derivedId("a".repeat(254), 1), `${"a".repeat(254)}/1`);
});
