// The part of Standard Schema (https://standardschema.dev) that is used here: zod, valibot, arktype and others have it.
import { BadInputError } from "./errors.js";

/** A schema of any library. */
export interface Schema<Input = unknown, Output = Input> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

/** What a schema takes. */
export type InputOf<S extends Schema> = NonNullable<S["~standard"]["types"]>["input"];
/** What it makes of that. */
export type OutputOf<S extends Schema> = NonNullable<S["~standard"]["types"]>["output"];

type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly Issue[] };

interface Issue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** What the schema makes of a value. Throws BadInputError, which names each place that does not fit. */
export async function checkInput<Output>(
  schema: Schema<unknown, Output>,
  value: unknown,
  name: string,
): Promise<Output> {
  const result = await schema["~standard"].validate(value);
  if (!result.issues) return result.value;
  const issues = result.issues.map(({ message, path = [] }) => {
    const keys = path.map((part) => String(typeof part === "object" ? part.key : part));
    return `${["input", ...keys].join(".")}: ${message}`;
  });
  throw new BadInputError(`the input of ${name} does not fit: ${issues.join("; ")}`);
}
