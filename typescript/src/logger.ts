// Where a client writes its log.

/** The log of a client and its workers, for example `console`. */
export interface Logger {
  info(text: string): unknown;
  warn(text: string, error?: unknown): unknown;
  error(text: string, error?: unknown): unknown;
}

/** Lines on stderr. */
export const STDERR: Logger = {
  info: (text) => console.error(text),
  warn: (text, ...error) => console.error(text, ...error),
  error: (text, ...error) => console.error(text, ...error),
};
